package livekit_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/reflect/protoreflect"
	_ "google.golang.org/protobuf/types/descriptorpb" // lets descriptors decode their options
)

// schema is LiveKit's schema in the form of testdata/livekit-schema.json.
type schema struct {
	About    string    `json:"_about"`
	Services []service `json:"services"`
	Messages []message `json:"messages"`
	Enums    []enum    `json:"enums"`
}

type service struct {
	Name    string   `json:"name"`
	File    string   `json:"file"`
	Methods []method `json:"methods"`
}

type method struct {
	Name, Input, Output string
	Deprecated          bool
}

type message struct {
	Name          string     `json:"name"`
	File          string     `json:"file"`
	Fields        []field    `json:"fields"`
	Reserved      [][2]int32 `json:"reserved"` // from and to, both included
	ReservedNames []string   `json:"reserved_names"`
	Deprecated    bool       `json:"deprecated"`
}

type field struct {
	Name       string `json:"name"`
	Number     int32  `json:"number"`
	Type       string `json:"type"`  // of a scalar, or a full name, or map
	Label      string `json:"label"` // repeated, optional (presence is explicit), or none
	Oneof      string `json:"oneof"`
	Deprecated bool   `json:"deprecated"`
	MapKey     string `json:"map_key"`
	MapValue   string `json:"map_value"`
	JSONName   string `json:"json_name"` // where it differs from the default
}

type enum struct {
	Name   string  `json:"name"`
	File   string  `json:"file"`
	Values []value `json:"values"`
}

type value struct {
	Name   string `json:"name"`
	Number int32  `json:"number"`
}

// Our schema is LiveKit's to the last field: nothing is missing and nothing is there besides, but for messages that only enclose
// others, which the facts leave out.
func TestSchemaIsLiveKits(t *testing.T) {
	want, got := facts(t), registered(t)
	methods := 0
	for _, s := range want.Services {
		methods += len(s.Methods)
	}
	counts := [...]int{len(want.Services), methods, len(want.Messages), len(want.Enums)}
	if counts != [...]int{9, 83, 259, 63} {
		t.Errorf("the facts have %d services, methods, messages and enums: not all were read", counts)
	}
	encloses := func(m message) bool {
		inside := func(name string) bool { return strings.HasPrefix(name, m.Name+".") }
		return m.empty() && (slices.ContainsFunc(want.Messages, func(o message) bool { return inside(o.Name) }) ||
			slices.ContainsFunc(want.Enums, func(o enum) bool { return inside(o.Name) }))
	}
	compare(t, want.Services, got.Services, func(s service) string { return s.Name }, nil)
	compare(t, want.Messages, got.Messages, func(m message) string { return m.Name }, encloses)
	compare(t, want.Enums, got.Enums, func(e enum) string { return e.Name }, nil)
}

// empty tells a message of which there is nothing to say but its name.
func (m message) empty() bool {
	return len(m.Fields)+len(m.Reserved)+len(m.ReservedNames) == 0 && !m.Deprecated
}

// compare demands that two lists are the same but for their order; extra says what may be in got alone.
func compare[T any](t *testing.T, want, got []T, name func(T) string, extra func(T) bool) {
	t.Helper()
	wanted := byName(t, want, name)
	gotten := byName(t, got, name)
	for n, w := range wanted {
		if g, ok := gotten[n]; !ok {
			t.Errorf("%s is missing", n)
		} else if got, want := fmt.Sprintf("%+v", g), fmt.Sprintf("%+v", w); got != want {
			t.Errorf("%s differs\n got %s\nwant %s", n, got, want)
		}
	}
	for n, g := range gotten {
		if _, ok := wanted[n]; !ok && (extra == nil || !extra(g)) {
			t.Errorf("%s is not LiveKit's", n)
		}
	}
}

func byName[T any](t *testing.T, list []T, name func(T) string) map[string]T {
	t.Helper()
	m := map[string]T{}
	for _, v := range list {
		if _, twice := m[name(v)]; twice {
			t.Errorf("%s is there twice", name(v))
		}
		m[name(v)] = v
	}
	return m
}

// facts reads what LiveKit's schema is. The files that it is in are its own matter, and so is the order of declarations.
func facts(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile("../../testdata/livekit-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields() // a fact that is not compared must not go unnoticed
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
	for i := range s.Services {
		s.Services[i].File = ""
	}
	for i := range s.Messages {
		s.Messages[i].File = ""
		s.Messages[i].sort()
	}
	for i := range s.Enums {
		s.Enums[i].File = ""
		s.Enums[i].sort()
	}
	return s
}

func (m *message) sort() {
	slices.SortFunc(m.Fields, func(a, b field) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(m.Reserved, func(a, b [2]int32) int { return cmp.Compare(a[0], b[0]) })
	slices.Sort(m.ReservedNames)
}

func (e *enum) sort() {
	slices.SortFunc(e.Values, func(a, b value) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
}

// registered describes all files of our registry.
func registered(t *testing.T) schema {
	t.Helper()
	var s schema
	livekit.Registry.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if f.Syntax() != protoreflect.Proto3 {
			t.Errorf("%s is %v", f.Path(), f.Syntax())
		}
		if n := f.Extensions().Len(); n > 0 {
			t.Errorf("%s has %d extensions", f.Path(), n)
		}
		for sd := range all(f.Services()) {
			s.Services = append(s.Services, describeService(t, sd))
		}
		s.add(f.Messages(), f.Enums())
		return true
	})
	return s
}

// add describes messages and enums with all that they enclose.
func (s *schema) add(messages protoreflect.MessageDescriptors, enums protoreflect.EnumDescriptors) {
	for md := range all(messages) {
		if !md.IsMapEntry() {
			s.Messages = append(s.Messages, describeMessage(md))
			s.add(md.Messages(), md.Enums())
		}
	}
	for ed := range all(enums) {
		s.Enums = append(s.Enums, describeEnum(ed))
	}
}

// all ranges over a list of descriptors.
func all[D any](list interface {
	Len() int
	Get(int) D
}) iter.Seq[D] {
	return func(yield func(D) bool) {
		for i := range list.Len() {
			if !yield(list.Get(i)) {
				return
			}
		}
	}
}

func describeService(t *testing.T, sd protoreflect.ServiceDescriptor) service {
	t.Helper()
	s := service{Name: string(sd.FullName())}
	for md := range all(sd.Methods()) {
		if md.IsStreamingClient() || md.IsStreamingServer() {
			t.Errorf("%s streams", md.FullName())
		}
		s.Methods = append(s.Methods, method{
			string(md.Name()), string(md.Input().FullName()), string(md.Output().FullName()), deprecated(md),
		})
	}
	return s
}

func describeMessage(md protoreflect.MessageDescriptor) message {
	m := message{Name: string(md.FullName()), Deprecated: deprecated(md)}
	for fd := range all(md.Fields()) {
		m.Fields = append(m.Fields, describeField(fd))
	}
	for r := range all(md.ReservedRanges()) {
		m.Reserved = append(m.Reserved, [2]int32{int32(r[0]), int32(r[1]) - 1}) // a descriptor's end is not included
	}
	for name := range all(md.ReservedNames()) {
		m.ReservedNames = append(m.ReservedNames, string(name))
	}
	m.sort()
	return m
}

func describeField(fd protoreflect.FieldDescriptor) field {
	f := field{Name: string(fd.Name()), Number: int32(fd.Number()), Type: typeOf(fd), Deprecated: deprecated(fd)}
	switch {
	case fd.IsMap():
		f.Type, f.MapKey, f.MapValue = "map", typeOf(fd.MapKey()), typeOf(fd.MapValue())
	case fd.IsList():
		f.Label = "repeated"
	case fd.HasOptionalKeyword():
		f.Label = "optional"
	case fd.ContainingOneof() != nil:
		f.Oneof = string(fd.ContainingOneof().Name())
	}
	if name := fd.JSONName(); name != defaultJSONName(fd) {
		f.JSONName = name
	}
	return f
}

func typeOf(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd.Message() != nil:
		return string(fd.Message().FullName())
	case fd.Enum() != nil:
		return string(fd.Enum().FullName())
	}
	return fd.Kind().String()
}

// defaultJSONName drops underscores and makes the letters after them capitals, as protobuf does.
func defaultJSONName(fd protoreflect.FieldDescriptor) string {
	var name strings.Builder
	for i, word := range strings.Split(string(fd.Name()), "_") {
		if i > 0 && word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		name.WriteString(word)
	}
	return name.String()
}

func describeEnum(ed protoreflect.EnumDescriptor) enum {
	e := enum{Name: string(ed.FullName())}
	for vd := range all(ed.Values()) {
		e.Values = append(e.Values, value{string(vd.Name()), int32(vd.Number())})
	}
	e.sort()
	return e
}

// deprecated tells whether a declaration has that option.
func deprecated(d protoreflect.Descriptor) bool {
	options, ok := d.Options().(interface{ GetDeprecated() bool })
	return ok && options.GetDeprecated()
}
