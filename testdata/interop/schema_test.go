package interop

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	_ "github.com/livekit/protocol/livekit" // registers their schema globally
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// namespaces are messages of the real-time protocol that no server API uses. Ours have no fields: they are there for the enum
// inside, which an API does use.
var namespaces = map[protoreflect.FullName]bool{
	"livekit.ClientInfo": true,
	"livekit.DataPacket": true,
}

// The two schemas are the same in all but comments, custom options, file names and the order of declarations.
func TestSameSchema(t *testing.T) {
	ours := describe(ourFiles())
	theirs := map[protoreflect.FullName]string{}
	for name := range ours {
		if namespaces[name] {
			continue
		}
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			t.Errorf("%s is not in their schema", name)
			continue
		}
		theirs[name] = describeOne(d)
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if ours[name] != theirs[name] {
			t.Errorf("%s differs\nours:\n%s\ntheirs:\n%s", name, ours[name], theirs[name])
		}
	}
}

// What is compared above is the whole of it: the numbers are those of the schema facts.
func TestSchemaIsWhole(t *testing.T) {
	var services, methods, messages, enums, spaces int
	for _, d := range ourDescriptors(ourFiles()) {
		switch d := d.(type) {
		case protoreflect.ServiceDescriptor:
			services++
			methods += d.Methods().Len()
		case protoreflect.MessageDescriptor:
			switch {
			case d.IsMapEntry():
			case !onlyEncloses(d):
				messages++
			case namespaces[d.FullName()]:
				spaces++
			}
		case protoreflect.EnumDescriptor:
			enums++
		}
	}
	got := fmt.Sprintf("%d services, %d methods, %d messages, %d enums", services, methods, messages, enums)
	if spaces != len(namespaces) {
		t.Errorf("%d of the messages %v have no fields, want all", spaces, namespaces)
	}
	if want := "9 services, 83 methods, 259 messages, 63 enums"; got != want {
		t.Errorf("the schema has %s, want %s", got, want)
	}
}

// onlyEncloses tells a message that is but a namespace for others.
func onlyEncloses(d protoreflect.MessageDescriptor) bool {
	return d.Fields().Len() == 0 && d.Messages().Len()+d.Enums().Len() > 0
}

// Their types stay the global ones: linking this project changes nothing for code that uses LiveKit's.
func TestGlobalRegistryIsTheirs(t *testing.T) {
	for _, d := range ourDescriptors(ourFiles()) {
		m, ok := d.(protoreflect.MessageDescriptor)
		if !ok || m.IsMapEntry() {
			continue
		}
		typ, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
		if err != nil {
			t.Error(err)
			continue
		}
		if typ.Descriptor() == d {
			t.Errorf("%s is ours in the global registry", m.FullName())
		}
	}
}

// ourDescriptors returns every message, enum and service of some files, nested ones included.
func ourDescriptors(files []protoreflect.FileDescriptor) []protoreflect.Descriptor {
	var all []protoreflect.Descriptor
	var nested func(protoreflect.MessageDescriptors, protoreflect.EnumDescriptors)
	nested = func(ms protoreflect.MessageDescriptors, es protoreflect.EnumDescriptors) {
		for i := range ms.Len() {
			all = append(all, ms.Get(i))
			nested(ms.Get(i).Messages(), ms.Get(i).Enums())
		}
		for i := range es.Len() {
			all = append(all, es.Get(i))
		}
	}
	for _, f := range files {
		nested(f.Messages(), f.Enums())
		for i := range f.Services().Len() {
			all = append(all, f.Services().Get(i))
		}
	}
	return all
}

func describe(files []protoreflect.FileDescriptor) map[protoreflect.FullName]string {
	m := map[protoreflect.FullName]string{}
	for _, d := range ourDescriptors(files) {
		m[d.FullName()] = describeOne(d)
	}
	return m
}

// describeOne writes down all that a descriptor says itself, a line a part. What it nests is described by itself.
func describeOne(d protoreflect.Descriptor) string {
	lines := []string{fmt.Sprintf("%s %s, %v", d.FullName(), options(d), d.ParentFile().Syntax())}
	switch d := d.(type) {
	case protoreflect.MessageDescriptor:
		for i := range d.Fields().Len() {
			lines = append(lines, field(d.Fields().Get(i)))
		}
		for i := range d.Messages().Len() {
			lines = append(lines, "message "+string(d.Messages().Get(i).Name()))
		}
		for i := range d.Enums().Len() {
			lines = append(lines, "enum "+string(d.Enums().Get(i).Name()))
		}
		lines = append(lines, fmt.Sprintf("reserved %v %v", d.ReservedRanges(), d.ReservedNames()))
	case protoreflect.EnumDescriptor:
		for i := range d.Values().Len() {
			v := d.Values().Get(i)
			lines = append(lines, fmt.Sprintf("value %s = %d %s", v.Name(), v.Number(), options(v)))
		}
		lines = append(lines, fmt.Sprintf("reserved %v %v", d.ReservedRanges(), d.ReservedNames()))
	case protoreflect.ServiceDescriptor:
		for i := range d.Methods().Len() {
			m := d.Methods().Get(i)
			lines = append(lines, fmt.Sprintf("rpc %s(%s stream=%t) returns (%s stream=%t) %s", m.Name(),
				m.Input().FullName(), m.IsStreamingClient(), m.Output().FullName(), m.IsStreamingServer(), options(m)))
		}
	}
	slices.SortFunc(lines[1:], cmp.Compare[string])
	return strings.Join(lines, "\n")
}

// field describes a field by the descriptor that a compiler would write, and by what the runtime makes of it.
func field(f protoreflect.FieldDescriptor) string {
	p := protodesc.ToFieldDescriptorProto(f)
	oneof := "-"
	if o := f.ContainingOneof(); o != nil {
		oneof = string(o.Name()) + options(o)
	}
	return fmt.Sprintf("field %s = %d %s %s %s json=%s oneof=%s optional=%t presence=%t packed=%t default=%q %s",
		p.GetName(), p.GetNumber(), p.GetLabel(), p.GetType(), p.GetTypeName(), f.JSONName(), oneof,
		p.GetProto3Optional(), f.HasPresence(), f.IsPacked(), p.GetDefaultValue(), options(f))
}

// options are the standard ones of a descriptor; LiveKit's own (masking in its logs, validation) are left out.
func options(d protoreflect.Descriptor) string {
	o := proto.Clone(d.Options())
	if !o.ProtoReflect().IsValid() {
		return "{}"
	}
	proto.RangeExtensions(o, func(ext protoreflect.ExtensionType, _ any) bool {
		proto.ClearExtension(o, ext)
		return true
	})
	o.ProtoReflect().SetUnknown(nil)
	return fmt.Sprintf("{%v}", o)
}
