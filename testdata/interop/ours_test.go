package interop

import (
	"testing"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ourFiles are the files of this project's schema.
func ourFiles() []protoreflect.FileDescriptor {
	var files []protoreflect.FileDescriptor
	livekit.Registry.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		files = append(files, f)
		return true
	})
	return files
}

func ourMessage(t *testing.T, name protoreflect.FullName) protoreflect.MessageType {
	t.Helper()
	typ, err := livekit.Registry.FindMessageByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return typ
}
