package lkrpc

import (
	"testing"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Each method of the schema has a row, and each row a method.
func TestEachMethodHasARow(t *testing.T) {
	rows := map[methodName]bool{}
	livekit.Registry.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		for i := range fd.Services().Len() {
			s := fd.Services().Get(i)
			for j := range s.Methods().Len() {
				name := methodName{string(s.Name()), string(s.Methods().Get(j).Name())}
				rows[name] = true
				if m, ok := methods[name]; !ok || m.grant == noGrant {
					t.Errorf("methods.go has no row with a grant for %s", name)
				}
			}
		}
		return true
	})
	for name, m := range methods {
		if name.reads() && m.repeat != safe {
			t.Errorf("%s only reads by its name, but is repeated as %s", name, m.repeat)
		}
		if !rows[name] {
			t.Errorf("methods.go has a row for %s, which is no method", name)
		}
	}
	if len(rows) != 83 {
		t.Errorf("the schema has %d methods, want 83", len(rows))
	}
}
