package auth_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// How long a comparison takes cannot be tested well, but what compares can: a secret value goes through a function whose time
// does not depend on it, and through no operator.
func TestConstantTime(t *testing.T) {
	for _, c := range []struct{ file, function, calls, value string }{
		{"webhook.go", "checkSum", "ConstantTimeCompare", "signed"},
		{"verify.go", "Verify", "Verify", "signature"}, // golang-jwt's, which uses hmac.Equal
	} {
		file, err := parser.ParseFile(token.NewFileSet(), c.file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Name.Name != c.function {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == c.calls && mentions(n, c.value) {
						calls++
						return false
					}
				case *ast.Ident:
					if n.Name == c.value {
						t.Errorf("%s uses %s for something else than %s", c.function, c.value, c.calls)
					}
				}
				return true
			})
		}
		if calls != 1 {
			t.Errorf("%s calls %s with %s %d times, want once", c.function, c.calls, c.value, calls)
		}
	}
}

func mentions(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name {
			found = true
		}
		return true
	})
	return found
}
