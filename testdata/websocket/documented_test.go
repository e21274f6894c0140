package sockets

import (
	"os"
	"strings"
	"testing"
)

// The package documentation of failover shows the functions that are compiled and run here, line by line.
func TestDocumentedExamples(t *testing.T) {
	doc, err := os.ReadFile("../../failover/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "// # RTC connections\n")
	if !ok {
		t.Fatal("the package documentation has no section on RTC connections")
	}
	section, _, _ = strings.Cut(section, "\n// # ")
	var code string
	for line := range strings.Lines(section) {
		if text, ok := strings.CutPrefix(line, "//\t"); ok {
			code += text
		}
	}
	shown := 0
	for _, file := range []string{"coder_example_test.go", "gorilla_example_test.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range strings.SplitAfter(string(text), "\n}\n") {
			i := strings.Index(f, "\nfunc ")
			if i < 0 {
				continue
			}
			if shown++; !strings.Contains(code, f[i+1:]) {
				t.Errorf("the package documentation does not show, line by line, this of %s:\n%s", file, f[i+1:])
			}
		}
	}
	if n := strings.Count("\n"+code, "\nfunc "); n != shown || n != 3 {
		t.Errorf("%d functions are shown, %d are here, want 3", n, shown)
	}
}
