package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
)

// importRoot is the folder that the .proto files import each other from. There is none by that name: it keeps the paths in the
// registry apart from other projects' room.proto.
const importRoot = "lkrpc/"

// compile reads every .proto file of a folder, with its comments, in the order of their names.
func compile(dir string) (linker.Files, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.proto"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no .proto file in %s", dir)
	}
	var names []string
	for _, name := range found {
		names = append(names, importRoot+filepath.Base(name))
	}
	compiler := protocompile.Compiler{
		SourceInfoMode: protocompile.SourceInfoStandard,
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: func(name string) (io.ReadCloser, error) {
				base, ours := strings.CutPrefix(name, importRoot)
				if !ours {
					return nil, os.ErrNotExist
				}
				return os.Open(filepath.Join(dir, base))
			},
		}),
	}
	return compiler.Compile(context.Background(), names...)
}
