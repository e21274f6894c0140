package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
)

// registries says which field of which builder in generated code names the registry that the file or its types go to. Left out,
// as protoc-gen-go does, it is the global one, where LiveKit's own Go package claims the same names: a program that links both
// would panic at start.
var registries = map[string]string{
	"DescBuilder": "FileRegistry",
	"TypeBuilder": "TypeRegistry",
}

// useOwnRegistry makes a file written by protoc-gen-go register in package livekit's Registry. It fails if the code is not of the
// form that it knows: one builder of each kind, without a registry.
func useOwnRegistry(src []byte) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	type insertion struct {
		offset int
		text   string
	}
	var insertions []insertion
	found := map[string]int{}
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		builder, field := registryOf(lit)
		if field == "" {
			return true
		}
		found[builder]++
		if hasField(lit, field) {
			err = fmt.Errorf("protoimpl.%s has a %s already", builder, field)
		}
		insertions = append(insertions, insertion{fset.Position(lit.Rbrace).Offset, field + ": Registry,\n"})
		return true
	})
	if err != nil {
		return nil, err
	}
	for builder := range registries {
		if found[builder] != 1 {
			return nil, fmt.Errorf("%d literals of protoimpl.%s, want 1", found[builder], builder)
		}
	}
	slices.SortFunc(insertions, func(a, b insertion) int { return cmp.Compare(b.offset, a.offset) }) // the last first
	for _, i := range insertions {
		src = slices.Insert(src, i.offset, []byte(i.text)...)
	}
	return format.Source(src)
}

// registryOf returns the name of the builder that a literal makes, and of its field for the registry; none for other literals.
func registryOf(lit *ast.CompositeLit) (builder, field string) {
	sel, ok := lit.Type.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "protoimpl" {
		return "", ""
	}
	return sel.Sel.Name, registries[sel.Sel.Name]
}

func hasField(lit *ast.CompositeLit, name string) bool {
	return slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := kv.Key.(*ast.Ident)
		return ok && key.Name == name
	})
}
