package interop

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Every message with every field set, in as many variants as its oneofs and enums ask for, crosses over by bytes and by JSON,
// from ours to theirs and from theirs to ours.
func TestMessagesCrossOver(t *testing.T) {
	count := 0
	for _, d := range ourDescriptors(ourFiles()) {
		m, ok := d.(protoreflect.MessageDescriptor)
		if !ok || m.IsMapEntry() || namespaces[m.FullName()] {
			continue
		}
		t.Run(string(m.Name()), func(t *testing.T) {
			ours := ourMessage(t, m.FullName())
			theirs, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
			if err != nil {
				t.Fatal(err)
			}
			for variant := range variants(m) {
				cross(t, filled(ours, variant), theirs)
				cross(t, filled(theirs, variant), ours)
				count++
			}
		})
	}
	if count < 259 {
		t.Errorf("%d messages crossed over in each direction, want one of each kind at least", count)
	}
}

// cross sends a message to the other side's type, checks that it means the same there, and takes it back.
func cross(t *testing.T, m proto.Message, other protoreflect.MessageType) {
	t.Helper()
	crossBytes(t, m, other)
	crossJSON(t, m, other)
}

func crossBytes(t *testing.T, m proto.Message, other protoreflect.MessageType) {
	t.Helper()
	wire := marshal(t, m)
	o := other.New().Interface()
	if err := proto.Unmarshal(wire, o); err != nil {
		t.Fatalf("bytes: %v", err)
	}
	// What one side does not know crosses over as unknown bytes. JSON has only what is known.
	if a, b := toJSON(t, m), toJSON(t, o); !sameJSON(t, a, b) {
		t.Fatalf("by bytes\n%s\nbecomes\n%s", a, b)
	}
	if back := marshal(t, o); !bytes.Equal(wire, back) {
		t.Fatalf("the bytes of %T change on the way back: %x to %x", m, wire, back)
	}
}

func crossJSON(t *testing.T, m proto.Message, other protoreflect.MessageType) {
	t.Helper()
	o := other.New().Interface()
	if err := protojson.Unmarshal(toJSON(t, m), o); err != nil {
		t.Fatalf("JSON: %v", err)
	}
	if a, b := marshal(t, m), marshal(t, o); !bytes.Equal(a, b) {
		t.Fatalf("by JSON %T becomes another message: %x, then %x", m, a, b)
	}
	back := m.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal(toJSON(t, o), back); err != nil {
		t.Fatalf("JSON on the way back: %v", err)
	}
	if !proto.Equal(m, back) {
		t.Fatalf("by JSON there and back, %v\nbecomes\n%v", m, back)
	}
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func toJSON(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}
