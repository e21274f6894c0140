package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Every service, method, message and enum is explained. Comments of all but methods begin with the name, as Go's do, so that the
// Go code reads well.
func TestDeclarationsAreExplained(t *testing.T) {
	schema, err := compile(schemaDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range schema {
		comment := func(d protoreflect.Descriptor) string {
			return strings.TrimSpace(f.SourceLocations().ByDescriptor(d).LeadingComments)
		}
		named := func(d protoreflect.Descriptor) {
			if c := comment(d); !strings.HasPrefix(c, string(d.Name())+" ") {
				t.Errorf("%s: the comment of %s is %q, want one that begins with its name", f.Path(), d.FullName(), c)
			}
		}
		var walk func(protoreflect.MessageDescriptors, protoreflect.EnumDescriptors)
		walk = func(messages protoreflect.MessageDescriptors, enums protoreflect.EnumDescriptors) {
			for i := range messages.Len() {
				if m := messages.Get(i); !m.IsMapEntry() {
					named(m)
					walk(m.Messages(), m.Enums())
				}
			}
			for i := range enums.Len() {
				named(enums.Get(i))
			}
		}
		walk(f.Messages(), f.Enums())
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			named(s)
			for i := range s.Methods().Len() {
				if m := s.Methods().Get(i); comment(m) == "" {
					t.Errorf("%s: %s has no comment", f.Path(), m.FullName())
				}
			}
		}
	}
}

// The house's rule for files written by hand.
func TestSchemaFilesAreShort(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(schemaDir, "*.proto"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > 500 {
			t.Errorf("%s has %d lines, more than 500", name, n)
		}
	}
}
