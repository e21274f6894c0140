package lkrpc_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of the house that a compiler does not know. Each test here reads the source.

const module = "github.com/lkrpc/lkrpc"

// requirements are all that a user of this module downloads, with what they need themselves.
var requirements = []string{
	"github.com/golang-jwt/jwt/v5",
	"github.com/google/uuid",
	"github.com/twitchtv/twirp",
	"google.golang.org/protobuf",
}

func TestFourRequirements(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace, Tool []any
	}
	if err := json.Unmarshal([]byte(goIn(t, ".", "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	slices.Sort(direct)
	if !slices.Equal(direct, requirements) {
		t.Errorf("go.mod requires %q, want exactly %q: what else is needed belongs in a nested module", direct, requirements)
	}
	if len(mod.Replace) > 0 || len(mod.Tool) > 0 {
		t.Errorf("go.mod replaces %v and has tools %v: users would not get the first and would download the second", mod.Replace, mod.Tool)
	}
}

// mayImport says what each package may import besides the standard library: imports run one way. Tests and examples may import
// all that the module has.
var mayImport = map[string][]string{
	"proto":              {},
	"proto/livekit":      {"google.golang.org/protobuf", "github.com/twitchtv/twirp"},
	"auth":               {module + "/proto/livekit", "github.com/golang-jwt/jwt/v5", "google.golang.org/protobuf"},
	"failover":           {"github.com/google/uuid"},
	"internal/rttest":    {},
	"failover/cloudtest": {module + "/failover", module + "/auth", module + "/proto/livekit", "google.golang.org/protobuf", "github.com/twitchtv/twirp"},
	".": {module + "/auth", module + "/failover", module + "/proto/livekit", "github.com/google/uuid",
		"google.golang.org/protobuf", "github.com/twitchtv/twirp"},
}

func TestImportsRunOneWay(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.nested {
			continue
		}
		dir := path.Dir(f.path)
		allowed, ok := mayImport[dir]
		seen[dir] = true
		free := f.isTest() || within(dir, "examples")
		switch {
		case free:
			allowed = append(slices.Clone(requirements), module)
		case !ok:
			t.Errorf("%s: no rule in mayImport says what package %s may import", f.path, dir)
			continue
		}
		for _, spec := range f.syntax.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !isStandard(name) && !slices.ContainsFunc(allowed, func(rule string) bool { return permits(rule, name, free) }) {
				t.Errorf("%s imports %s; package %s may import %q", f.path, name, dir, allowed)
			}
		}
	}
	for dir := range mayImport {
		if !seen[dir] {
			t.Errorf("mayImport has a rule for package %s, which has no files", dir)
		}
	}
}

// permits tells whether a rule allows an import. A module of others is allowed with all its packages; ours are only where
// imports are free, in tests and examples, and one by one elsewhere.
func permits(rule, name string, free bool) bool {
	return rule == name || strings.HasPrefix(name, rule+"/") && (free || !within(rule, module))
}

// isStandard tells whether a package is of the standard library: there, the first element has no dot.
func isStandard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !strings.Contains(first, ".")
}

func within(name, root string) bool {
	return name == root || strings.HasPrefix(name, root+"/")
}

func TestFilesAreShort(t *testing.T) {
	const most = 500
	for _, f := range goFiles(t) {
		if n := bytes.Count(f.text, []byte("\n")); n > most && !ast.IsGenerated(f.syntax) {
			t.Errorf("%s has %d lines, more than %d: one idea a file", f.path, n, most)
		}
	}
}

// A test that sleeps is slow when it passes and wrong when the machine is busy: time in tests is testing/synctest's, or a wait
// for what is to happen.
func TestNoSleepInTests(t *testing.T) {
	for _, f := range goFiles(t) {
		if !f.isTest() && !strings.HasPrefix(f.path, "testdata/") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
				if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "time" {
					t.Errorf("%s calls time.Sleep", f.fset.Position(sel.Pos()))
				}
			}
			return true
		})
	}
}

// usedBy says which file uses each nested module that has no tests of its own, by naming its folder or part of it.
var usedBy = map[string]struct{ file, name string }{
	"testdata/servers/livekit-server": {"testdata/servers/servers.go", `"livekit-server"`},
	"testdata/servers/test-server":    {"testdata/servers/servers.go", `"test-server"`},
	"tools":                           {".ci/run", "tools"},
}

// Each nested module is tested by TestNestedModules, or it pins a tool that a named file uses.
func TestNestedModulesAreUsed(t *testing.T) {
	dirs := nestedModules(t)
	for _, dir := range dirs {
		use, named := usedBy[dir]
		if tested := hasTests(t, dir); tested == named {
			t.Errorf("module %s: has tests: %t, named in usedBy: %t; want one of the two", dir, tested, named)
			continue
		}
		if !named {
			continue
		}
		text, err := os.ReadFile(use.file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(use.name)) {
			t.Errorf("module %s: %s does not name it (%s)", dir, use.file, use.name)
		}
	}
	for dir := range usedBy {
		if !slices.Contains(dirs, dir) {
			t.Errorf("usedBy names module %s, which is not there", dir)
		}
	}
}

// sourceFile is a Go file of the repository.
type sourceFile struct {
	path   string // with slashes
	nested bool   // belongs to a nested module
	text   []byte
	fset   *token.FileSet
	syntax *ast.File
}

func (f *sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// goFiles parses every Go file of the repository.
func goFiles(t *testing.T) []*sourceFile {
	t.Helper()
	nested := nestedModules(t)
	var files []*sourceFile
	walk(t, func(name string, d fs.DirEntry) {
		if filepath.Ext(name) != ".go" {
			return
		}
		f := &sourceFile{path: filepath.ToSlash(name), fset: token.NewFileSet()}
		f.nested = slices.ContainsFunc(nested, func(dir string) bool { return within(f.path, dir) })
		var err error
		if f.text, err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		if f.syntax, err = parser.ParseFile(f.fset, name, f.text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	})
	return files
}
