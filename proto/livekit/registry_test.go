package livekit

import (
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// A program that links LiveKit's own package has these names in the global registry: ours must not be there.
func TestGlobalRegistryHasNoneOfOurs(t *testing.T) {
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if pkg := string(f.Package()); pkg == "livekit" || strings.HasPrefix(pkg, "livekit.") || strings.HasPrefix(f.Path(), "lkrpc/") {
			t.Errorf("file %s of package %s is registered globally", f.Path(), pkg)
		}
		return true
	})
	ours := func(d protoreflect.Descriptor) {
		if strings.HasPrefix(string(d.FullName()), "livekit.") {
			t.Errorf("%s is registered globally", d.FullName())
		}
	}
	protoregistry.GlobalTypes.RangeMessages(func(m protoreflect.MessageType) bool { ours(m.Descriptor()); return true })
	protoregistry.GlobalTypes.RangeEnums(func(e protoreflect.EnumType) bool { ours(e.Descriptor()); return true })
}

// Each declaration has a Go type, and each Go type a declaration.
func TestEachDeclarationHasItsType(t *testing.T) {
	declared := map[protoreflect.FullName]bool{}
	var declare func(protoreflect.MessageDescriptors, protoreflect.EnumDescriptors)
	declare = func(messages protoreflect.MessageDescriptors, enums protoreflect.EnumDescriptors) {
		for i := range messages.Len() {
			m := messages.Get(i)
			if m.IsMapEntry() {
				continue
			}
			declared[m.FullName()] = true
			if typ, err := Registry.FindMessageByName(m.FullName()); err != nil || typ.Descriptor() != m || typ.New().Descriptor() != m {
				t.Errorf("the type of message %s: %v, %v", m.FullName(), typ, err)
			}
			declare(m.Messages(), m.Enums())
		}
		for i := range enums.Len() {
			e := enums.Get(i)
			declared[e.FullName()] = true
			if typ, err := Registry.FindEnumByName(e.FullName()); err != nil || typ.Descriptor() != e {
				t.Errorf("the type of enum %s: %v, %v", e.FullName(), typ, err)
			}
		}
	}
	Registry.RangeFiles(func(f protoreflect.FileDescriptor) bool { declare(f.Messages(), f.Enums()); return true })

	types := 0
	typed := func(d protoreflect.Descriptor) {
		types++
		if !declared[d.FullName()] {
			t.Errorf("%s has a type but is in no file", d.FullName())
		}
		if found, err := Registry.FindDescriptorByName(d.FullName()); err != nil || found != d {
			t.Errorf("the descriptor of %s: %v, %v", d.FullName(), found, err)
		}
	}
	Registry.RangeMessages(func(m protoreflect.MessageType) bool { typed(m.Descriptor()); return true })
	Registry.RangeEnums(func(e protoreflect.EnumType) bool { typed(e.Descriptor()); return true })
	if types != len(declared) || types == 0 {
		t.Errorf("%d types for %d declarations", types, len(declared))
	}
}

func TestLookUps(t *testing.T) {
	ours := (*Room)(nil).ProtoReflect().Type()
	finds(t, Registry.FindFileByPath, "lkrpc/models.proto", File_lkrpc_models_proto)
	finds(t, Registry.FindMessageByName, "livekit.Room", ours)
	finds(t, Registry.FindMessageByURL, "type.googleapis.com/livekit.Room", ours)
	finds(t, Registry.FindEnumByName, "livekit.TrackType", TrackType_AUDIO.Type())
	finds(t, Registry.FindDescriptorByName, "livekit.Room.name", protoreflect.Descriptor(ours.Descriptor().Fields().ByName("name")))

	global := (*durationpb.Duration)(nil).ProtoReflect().Type()
	finds(t, Registry.FindFileByPath, "google/protobuf/duration.proto", durationpb.File_google_protobuf_duration_proto)
	finds(t, Registry.FindMessageByName, "google.protobuf.Duration", global)
	finds(t, Registry.FindMessageByURL, "type.googleapis.com/google.protobuf.Duration", global)
	finds(t, Registry.FindEnumByName, "google.protobuf.Edition", descriptorpb.Edition_EDITION_2023.Type())
	finds(t, Registry.FindDescriptorByName, "google.protobuf.Duration.nanos",
		protoreflect.Descriptor(global.Descriptor().Fields().ByName("nanos")))

	lacks(t, Registry.FindFileByPath, "lkrpc/none.proto")
	lacks(t, Registry.FindMessageByName, "livekit.None")
	lacks(t, Registry.FindMessageByURL, "type.googleapis.com/livekit.None")
	lacks(t, Registry.FindEnumByName, "livekit.None")
	lacks(t, Registry.FindExtensionByName, "livekit.none")
	lacks(t, Registry.FindDescriptorByName, "livekit.Room.none")
	if x, err := Registry.FindExtensionByNumber("livekit.Room", 1); err != protoregistry.NotFound {
		t.Errorf("an extension of Room: %v, %v", x, err)
	}
	if m, err := Registry.FindMessageByName("livekit.TrackType"); err == nil || err == protoregistry.NotFound {
		t.Errorf("an enum looked up as message: %v, %v; want an error that says what it is", m, err)
	}
}

func finds[K any, V comparable](t *testing.T, find func(K) (V, error), key K, want V) {
	t.Helper()
	if got, err := find(key); err != nil || got != want {
		t.Errorf("%v: %v, %v; want %v", key, got, err, want)
	}
}

func lacks[K, V any](t *testing.T, find func(K) (V, error), key K) {
	t.Helper()
	if got, err := find(key); err != protoregistry.NotFound {
		t.Errorf("%v: %v, %v; want NotFound", key, got, err)
	}
}

// What takes a name that is there is refused, and what is there stays.
func TestDuplicatesAreRefused(t *testing.T) {
	other := dynamicFile(t, &descriptorpb.FileDescriptorProto{
		Name:        proto.String("other.proto"),
		Package:     proto.String("livekit"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Room")}},
		EnumType: []*descriptorpb.EnumDescriptorProto{{
			Name:  proto.String("TrackType"),
			Value: []*descriptorpb.EnumValueDescriptorProto{{Name: proto.String("NEW"), Number: proto.Int32(0)}},
		}},
	})
	for what, err := range map[string]error{
		"the same file":    Registry.RegisterFile(File_lkrpc_models_proto),
		"a file's name":    Registry.RegisterFile(other),
		"the same message": Registry.RegisterMessage((*Room)(nil).ProtoReflect().Type()),
		"a message's name": Registry.RegisterMessage(dynamicpb.NewMessageType(other.Messages().ByName("Room"))),
		"the same enum":    Registry.RegisterEnum(TrackType_AUDIO.Type()),
		"an enum's name":   Registry.RegisterEnum(dynamicpb.NewEnumType(other.Enums().ByName("TrackType"))),
	} {
		if err == nil {
			t.Errorf("%s was registered twice", what)
		}
	}
	lacks(t, Registry.FindFileByPath, "other.proto")
	finds(t, Registry.FindMessageByName, "livekit.Room", (*Room)(nil).ProtoReflect().Type())
	finds(t, Registry.FindEnumByName, "livekit.TrackType", TrackType_AUDIO.Type())
}

func TestExtensions(t *testing.T) {
	file := dynamicFile(t, &descriptorpb.FileDescriptorProto{
		Name:       proto.String("extension.proto"),
		Dependency: []string{"google/protobuf/descriptor.proto"},
		Extension: []*descriptorpb.FieldDescriptorProto{{
			Name:     proto.String("unit"),
			Number:   proto.Int32(50000),
			Type:     descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
			Label:    descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			Extendee: proto.String(".google.protobuf.FieldOptions"),
		}},
	})
	r := new(registry)
	unit := dynamicpb.NewExtensionType(file.Extensions().ByName("unit"))
	if err := r.RegisterExtension(unit); err != nil {
		t.Fatal(err)
	}
	if err := r.RegisterExtension(unit); err == nil {
		t.Error("registered twice")
	}
	finds(t, r.FindExtensionByName, "unit", unit)
	if x, err := r.FindExtensionByNumber("google.protobuf.FieldOptions", 50000); err != nil || x != unit {
		t.Errorf("by number: %v, %v", x, err)
	}
}

// dynamicFile makes a file whose imports are looked up in Registry.
func dynamicFile(t *testing.T, file *descriptorpb.FileDescriptorProto) protoreflect.FileDescriptor {
	t.Helper()
	fd, err := protodesc.NewFile(file, Registry)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// A schema of somebody else can import our files.
func TestOthersImportOurFiles(t *testing.T) {
	file := dynamicFile(t, &descriptorpb.FileDescriptorProto{
		Name:       proto.String("importer.proto"),
		Package:    proto.String("importer"),
		Dependency: []string{"lkrpc/models.proto", "google/protobuf/duration.proto"},
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("Booking"),
			Field: []*descriptorpb.FieldDescriptorProto{
				messageField("room", 1, ".livekit.Room"),
				messageField("time", 2, ".google.protobuf.Duration"),
			},
		}},
	})
	room := file.Messages().ByName("Booking").Fields().ByName("room").Message()
	if want := (*Room)(nil).ProtoReflect().Descriptor(); room != want {
		t.Errorf("the field has %v, want our %v", room, want)
	}
}

func messageField(name string, number int32, typ string) *descriptorpb.FieldDescriptorProto {
	return &descriptorpb.FieldDescriptorProto{
		Name:     &name,
		Number:   &number,
		TypeName: &typ,
		Type:     descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(),
		Label:    descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}
}

// Inside an Any, our messages and the well-known ones are written and read as JSON and text with Registry, and ours not without.
func TestAny(t *testing.T) {
	for _, m := range []proto.Message{&Room{Name: "röm", MaxParticipants: 3}, durationpb.New(90e9)} {
		in, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		text, err := protojson.MarshalOptions{Resolver: Registry}.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out anypb.Any
		if err := (protojson.UnmarshalOptions{Resolver: Registry}).Unmarshal(text, &out); err != nil || !proto.Equal(in, &out) {
			t.Errorf("JSON %s: %v, %v", text, &out, err)
		}
		text, err = prototext.MarshalOptions{Resolver: Registry}.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		out.Reset()
		if err := (prototext.UnmarshalOptions{Resolver: Registry}).Unmarshal(text, &out); err != nil || !proto.Equal(in, &out) {
			t.Errorf("text %s: %v, %v", text, &out, err)
		}
		got, err := anypb.UnmarshalNew(in, proto.UnmarshalOptions{Resolver: Registry})
		if err != nil || !proto.Equal(got, m) {
			t.Errorf("unmarshalled %v, %v; want %v", got, err, m)
		}
		_, err = protojson.Marshal(in)
		if _, ours := m.(*Room); ours != (err != nil) {
			t.Errorf("JSON of %s with the global registry: %v", in.TypeUrl, err)
		}
	}
}

func TestRangesEndEarly(t *testing.T) {
	files, messages, enums := 0, 0, 0
	Registry.RangeFiles(func(protoreflect.FileDescriptor) bool { files++; return files < 2 })
	Registry.RangeMessages(func(protoreflect.MessageType) bool { messages++; return messages < 3 })
	Registry.RangeEnums(func(protoreflect.EnumType) bool { enums++; return enums < 4 })
	if files != 2 || messages != 3 || enums != 4 {
		t.Errorf("%d files, %d messages and %d enums were seen, want 2, 3 and 4", files, messages, enums)
	}
}

// Look-ups, ranges with look-ups inside, and registrations may all be at the same time. The race detector judges.
func TestConcurrentUse(t *testing.T) {
	r := new(registry)
	var all sync.WaitGroup
	Registry.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		all.Go(func() {
			if err := r.RegisterFile(f); err != nil {
				t.Error(err)
			}
			finds(t, r.FindFileByPath, f.Path(), f)
		})
		return true
	})
	Registry.RangeMessages(func(m protoreflect.MessageType) bool {
		name := m.Descriptor().FullName()
		all.Go(func() {
			if err := r.RegisterMessage(m); err != nil {
				t.Error(err)
			}
			finds(t, r.FindMessageByName, name, m)
			finds(t, Registry.FindMessageByName, name, m)
		})
		return true
	})
	for range 4 {
		all.Go(func() {
			r.RangeMessages(func(m protoreflect.MessageType) bool {
				finds(t, r.FindMessageByName, m.Descriptor().FullName(), m)
				return true
			})
		})
	}
	all.Wait()
}
