package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is committed is what the schema gives, file by file: nothing is edited by hand, missing or left over.
func TestCommittedCodeIsGenerated(t *testing.T) {
	dir := t.TempDir()
	if err := run(schemaDir, dir); err != nil {
		t.Fatal(err)
	}
	want, got := generatedIn(t, dir), generatedIn(t, outputDir)
	if len(want) == 0 {
		t.Fatal("nothing was generated")
	}
	for name, text := range want {
		if !bytes.Equal(text, got[name]) {
			t.Errorf("%s is not what the schema gives: run go generate ./proto and commit what it writes", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is left over: run go generate ./proto", name)
		}
	}
}

func TestOldCodeStaysWhenTheSchemaIsWrong(t *testing.T) {
	schema, output := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(output, "old.pb.go"), "package livekit\n")
	wrong := map[string]string{
		"a type that is not there":   `syntax = "proto3"; package livekit; message M { None n = 1; }`,
		"an import that is not ours": `syntax = "proto3"; package livekit; import "other/x.proto";`,
		"no Go package":              `syntax = "proto3"; package livekit; message M {}`,
	}
	for name, text := range wrong {
		t.Run(name, func(t *testing.T) {
			writeFile(t, filepath.Join(schema, "wrong.proto"), text)
			if err := run(schema, output); err == nil || !strings.Contains(err.Error(), "lkrpc/wrong.proto") {
				t.Errorf("got %v, want an error that names the file", err)
			}
			if names := slices.Collect(maps.Keys(generatedIn(t, output))); !slices.Equal(names, []string{"old.pb.go"}) {
				t.Errorf("the output has %q", names)
			}
		})
	}
	if err := run(t.TempDir(), output); err == nil {
		t.Error("no error for a folder without .proto files")
	}
}

func TestStaleCodeIsRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"gone.pb.go", "gone.twirp.go", "kept.pb.go", "registry.go"} {
		writeFile(t, filepath.Join(dir, name), "old")
	}
	if err := write(dir, map[string][]byte{"kept.pb.go": []byte("new")}); err != nil {
		t.Fatal(err)
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range found {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name()] = string(text)
	}
	if want := map[string]string{"kept.pb.go": "new", "registry.go": "old"}; !maps.Equal(got, want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}

func generatedIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	names, err := generatedFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
