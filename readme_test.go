package lkrpc_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// readmeScope is what the blocks of README take for granted. otelhttp is in no module that README's reader has by lkrpc.
const readmeScope = `package readme

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

func _(ctx context.Context, t *testing.T, key, secret, room string, client *lkrpc.Client, dispatch *livekit.AgentDispatch,
	request *livekit.CreateAgentDispatchRequest, r *http.Request, count func(...string),
	otelhttp struct{ NewTransport func(http.RoundTripper) http.RoundTripper }) error {
`

// The Go in README compiles. What a block makes it need not use, but a block with imports of its own is whole.
func TestReadmeCompiles(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	imports := compiled(t, ".", "./auth", "./failover", "./failover/cloudtest", "./proto/livekit", "github.com/twitchtv/twirp",
		"context", "errors", "log/slog", "net/http", "testing", "time")
	blocks := goBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 7 {
		t.Errorf("%d blocks found", len(blocks))
	}
	whole := 0
	for _, block := range blocks {
		code := block[1]
		switch {
		case strings.HasPrefix(code, "import ("):
			code = "package readme\n" + code
			whole++
		case strings.HasPrefix(code, "lkrpc.With"), strings.HasPrefix(code, "failover."): // an option
			code = readmeScope + "_ = " + code + "return nil\n}\n"
		case strings.Contains(code, "errors.As(err") && !strings.Contains(code, "err :="):
			code = readmeScope + "var err error\n" + code + "return err\n}\n"
		default:
			code = readmeScope + code + "return err\n}\n"
		}
		for _, err := range compile(code, imports) {
			if soft := (types.Error{}); !errors.As(err, &soft) || !soft.Soft || strings.HasPrefix(block[1], "import (") {
				t.Errorf("%v in\n%s", err, block[1])
			}
		}
	}
	if whole == 0 {
		t.Error("no block is a whole file")
	}
}

func compile(code string, imports types.Importer) (errs []error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "README.md", code, 0)
	if err != nil {
		return []error{err}
	}
	config := types.Config{Importer: imports, Error: func(err error) { errs = append(errs, err) }}
	config.Check("readme", fset, []*ast.File{file}, nil)
	return errs
}

// compiled returns an importer of these packages and all that they need, as the go command compiled them.
func compiled(t *testing.T, packages ...string) types.Importer {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, packages...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			files[path] = file
		}
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("%s is not known to the go command", path)
		}
		return os.Open(files[path])
	})
}
