// Command gen writes the Go code of package livekit from the .proto files. Run it by go generate ./proto in the root module.
//
// It needs Go alone: the schema is compiled by protocompile, the messages are written by protoc-gen-go's own package, the clients
// and servers by protoc-gen-twirp, which this module pins as a tool.
package main

import (
	"fmt"
	"os"
)

// Where things are, seen from this module's folder.
const (
	schemaDir = ".."
	outputDir = "../livekit"
)

func main() {
	if err := run(schemaDir, outputDir); err != nil {
		fmt.Fprintln(os.Stderr, "proto/gen:", err)
		os.Exit(1)
	}
}

// run generates all files before it writes the first, so that a mistake in the schema leaves the old code as it was.
func run(schemaDir, outputDir string) error {
	schema, err := compile(schemaDir)
	if err != nil {
		return err
	}
	code, err := generate(schema)
	if err != nil {
		return err
	}
	return write(outputDir, code)
}
