package interop

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// depth is how far messages that hold themselves, directly or through others, are filled.
const depth = 4

// variants returns how many messages it takes to see each member of each oneof and each value of each enum.
func variants(d protoreflect.MessageDescriptor) int {
	return mostChoices(d, 1)
}

func mostChoices(d protoreflect.MessageDescriptor, level int) int {
	most := 1
	for i := range d.Oneofs().Len() {
		most = max(most, d.Oneofs().Get(i).Fields().Len())
	}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if e := f.Enum(); e != nil {
			most = max(most, e.Values().Len())
		}
		if m := f.Message(); m != nil && level < depth {
			most = max(most, mostChoices(m, level+1))
		}
	}
	return most
}

// filler gives every field a value of its own, none of them zero but where an enum has its turn.
type filler struct {
	variant int // which member of a oneof, which value of an enum
	next    int // the last number given out
}

// filled returns a message with all its fields set, down to depth.
func filled(typ protoreflect.MessageType, variant int) proto.Message {
	m := typ.New()
	(&filler{variant: variant}).fill(m, 1)
	return m.Interface()
}

func (f *filler) fill(m protoreflect.Message, level int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if o := fd.ContainingOneof(); o != nil && o.Fields().Get(f.variant%o.Fields().Len()) != fd {
			continue
		}
		if fd.Message() != nil && !fd.IsMap() && level == depth {
			continue
		}
		switch {
		case fd.IsMap():
			f.fillMap(m.Mutable(fd).Map(), fd, level)
		case fd.IsList():
			list := m.Mutable(fd).List()
			for range 2 {
				list.Append(f.value(fd, list.NewElement, level))
			}
		default:
			m.Set(fd, f.value(fd, func() protoreflect.Value { return m.NewField(fd) }, level))
		}
	}
}

func (f *filler) fillMap(entries protoreflect.Map, fd protoreflect.FieldDescriptor, level int) {
	if fd.MapValue().Message() != nil && level == depth {
		return
	}
	for range 2 {
		key := f.value(fd.MapKey(), nil, level).MapKey()
		entries.Set(key, f.value(fd.MapValue(), entries.NewValue, level))
	}
}

// value returns a value for a field. fresh makes an empty one of a message.
func (f *filler) value(fd protoreflect.FieldDescriptor, fresh func() protoreflect.Value, level int) protoreflect.Value {
	f.next++
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(f.variant % values.Len()).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(f.next))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(1<<31 + uint32(f.next))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(1<<33 + int64(f.next)) // in range as the seconds of a Timestamp or a Duration, too
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(1<<63 + uint64(f.next))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(f.next) + 0.5)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(f.next) + 0.1)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprintf("%s ünï 👋 %d", fd.Name(), f.next))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0, 0xff, byte(f.next), byte(f.next >> 8)})
	case protoreflect.MessageKind:
		v := fresh()
		f.fill(v.Message(), level+1)
		return v
	}
	panic(fmt.Sprintf("%s: no value for a %v", fd.FullName(), fd.Kind()))
}
