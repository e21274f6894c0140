package main

import (
	"os"
	"path/filepath"
)

// generated are the names of what is generated, as opposed to what is written by hand.
var generated = []string{"*.pb.go", "*.twirp.go"}

// write puts the code into a folder and removes generated files that the schema no longer has.
func write(dir string, code map[string][]byte) error {
	old, err := generatedFiles(dir)
	if err != nil {
		return err
	}
	for _, name := range old {
		if _, ok := code[name]; !ok {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	for name, text := range code {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generatedFiles returns the names of the generated files in a folder.
func generatedFiles(dir string) ([]string, error) {
	var names []string
	for _, pattern := range generated {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}
