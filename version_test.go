package lkrpc_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/lkrpc/lkrpc"
)

func TestVersionIsTheChangelogsNewest(t *testing.T) {
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)\b`).FindSubmatch(text)
	if m == nil {
		t.Fatal("CHANGELOG.md has no heading of a version")
	}
	if newest := string(m[1]); newest != lkrpc.Version {
		t.Errorf("Version is %s, the newest in CHANGELOG.md is %s", lkrpc.Version, newest)
	}
}
