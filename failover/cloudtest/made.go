package cloudtest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// made answers the methods of all services but rooms and dispatches, by the shape of their messages alone: a reply repeats what the
// request says under the same names, what is created gets ids and is kept, and lists show what is kept. Nothing rings, records or
// runs. Safe for concurrent use.
type made struct {
	dedup bool
	mu    sync.Mutex
	kept  []proto.Message
}

// services are the interfaces that name the replies of their methods.
var services = map[string]reflect.Type{
	"AgentSimulation":    reflect.TypeFor[livekit.AgentSimulation](),
	"CloudAgent":         reflect.TypeFor[livekit.CloudAgent](),
	"Connector":          reflect.TypeFor[livekit.Connector](),
	"Egress":             reflect.TypeFor[livekit.Egress](),
	"Ingress":            reflect.TypeFor[livekit.Ingress](),
	"PhoneNumberService": reflect.TypeFor[livekit.PhoneNumberService](),
	"SIP":                reflect.TypeFor[livekit.SIP](),
}

// newReply returns an empty reply of a method.
func newReply(call *rpc) (proto.Message, error) {
	if service := services[call.service]; service != nil {
		if method, ok := service.MethodByName(call.method); ok {
			if reply, ok := reflect.New(method.Type.Out(0).Elem()).Interface().(proto.Message); ok {
				return reply, nil
			}
		}
	}
	return nil, fmt.Errorf("cloudtest: no reply is known for %s", call.name())
}

func (s *made) answer(call *rpc) (proto.Message, error) {
	reply, err := newReply(call)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.reads() {
		s.show(reply.ProtoReflect(), call.request)
		return reply, nil
	}
	old := s.named(call.request)
	if old >= 0 {
		echo(reply.ProtoReflect(), proto.Clone(s.kept[old]))
	}
	echo(reply.ProtoReflect(), proto.Clone(call.request))
	switch call.verb() {
	case "Create", "Start", "Dial", "Purchase", "Transfer":
		s.name(reply.ProtoReflect(), call)
		s.kept = append(s.kept, proto.Clone(reply))
	case "Update", "Stop":
		if finish := finishes[call.name()]; finish != nil {
			finish(reply)
		}
		if old >= 0 && sameType(reply, s.kept[old]) {
			s.kept[old] = proto.Clone(reply)
		}
	case "Delete", "Destroy":
		if old >= 0 {
			s.kept = slices.Delete(s.kept, old, old+1)
		}
	}
	if f := field(reply, "success"); f != nil && f.Kind() == protoreflect.BoolKind {
		reply.ProtoReflect().Set(f, protoreflect.ValueOfBool(true))
	}
	return reply, nil
}

// finishes sets what the end of a thing changes in it.
var finishes = map[string]func(proto.Message){
	"Egress/StopEgress": func(m proto.Message) { m.(*livekit.EgressInfo).Status = livekit.EgressStatus_EGRESS_ENDING },
}

// verb is the first word of the method's name.
func (c *rpc) verb() string {
	for i, r := range c.method {
		if i > 0 && r >= 'A' && r <= 'Z' {
			return c.method[:i]
		}
	}
	return c.method
}

// show fills a reply with what is kept of its fields' types, narrowed by the ids that the request names.
func (s *made) show(reply protoreflect.Message, request proto.Message) {
	fields := reply.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Message() == nil || f.IsMap() {
			continue
		}
		for _, m := range s.kept {
			if m.ProtoReflect().Descriptor().FullName() != f.Message().FullName() || !agree(request, m) {
				continue
			}
			value := protoreflect.ValueOfMessage(proto.Clone(m).ProtoReflect())
			if !f.IsList() {
				reply.Set(f, value)
				break
			}
			reply.Mutable(f).List().Append(value)
		}
	}
}

// named returns the place of the kept thing whose id the request names, -1 if there is none.
func (s *made) named(request proto.Message) int {
	return slices.IndexFunc(s.kept, func(m proto.Message) bool {
		id := firstField(m)
		return isID(id) && textOf(request, id.Name()) != "" && textOf(request, id.Name()) == textOf(m, id.Name())
	})
}

// agree reports whether a thing has the ids and the room that the request names, as far as it has such fields.
func agree(request, thing proto.Message) bool {
	fields := request.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		want := textOf(request, f.Name())
		if want != "" && (isID(f) || f.Name() == "room_name") && field(thing, f.Name()) != nil && textOf(thing, f.Name()) != want {
			return false
		}
		if ids := request.ProtoReflect().Get(f); isIDsOf(f, thing) && ids.List().Len() > 0 && !has(ids.List(), textOf(thing, firstField(thing).Name())) {
			return false
		}
	}
	return true
}

// isIDsOf reports whether a field lists ids of such things: "trunk_ids" those of what begins with a "sip_trunk_id".
func isIDsOf(f protoreflect.FieldDescriptor, thing proto.Message) bool {
	one, ok := strings.CutSuffix(string(f.Name()), "s")
	own := firstField(thing)
	return ok && f.IsList() && f.Kind() == protoreflect.StringKind && isID(own) && strings.HasSuffix(one, "_id") &&
		strings.HasSuffix("_"+string(own.Name()), "_"+one)
}

func has(list protoreflect.List, text string) bool {
	for i := range list.Len() {
		if list.Get(i).String() == text {
			return true
		}
	}
	return false
}

// name gives a new thing the ids that it lacks.
func (s *made) name(reply protoreflect.Message, call *rpc) {
	fields := reply.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !isID(f) || reply.Has(f) {
			continue
		}
		id := newID(idPrefix(f.Name()))
		if s.dedup && call.id != "" && call.keyed() {
			id = derivedID(idPrefix(f.Name()), call.name()+"\x00"+string(f.Name()), call.id)
		}
		reply.Set(f, protoreflect.ValueOfString(id))
	}
}

var idPrefixes = map[protoreflect.Name]string{
	"egress_id": "EG_", "ingress_id": "IN_", "sip_trunk_id": "ST_", "sip_dispatch_rule_id": "SDR_", "sip_call_id": "SCL_",
	"participant_id": "PA_", "room_id": "RM_", "agent_id": "CA_",
}

func idPrefix(name protoreflect.Name) string {
	if prefix := idPrefixes[name]; prefix != "" {
		return prefix
	}
	return "ID_"
}

// echo copies into m the fields of another message that have the same name and type, and before them those of the messages in it.
func echo(m protoreflect.Message, from proto.Message) {
	src := from.ProtoReflect()
	same := sameType(m.Interface(), from)
	src.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !same && f.Message() != nil && !f.IsList() && !f.IsMap() {
			echo(m, v.Message().Interface())
		}
		return true
	})
	src.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if to := m.Descriptor().Fields().ByName(f.Name()); to != nil && (same || sameShape(to, f)) {
			m.Set(to, v)
		}
		return true
	})
}

func sameType(a, b proto.Message) bool {
	return a.ProtoReflect().Descriptor().FullName() == b.ProtoReflect().Descriptor().FullName()
}

func sameShape(a, b protoreflect.FieldDescriptor) bool {
	if a.Kind() != b.Kind() || a.Cardinality() != b.Cardinality() || a.IsMap() || b.IsMap() {
		return false
	}
	switch {
	case a.Message() != nil:
		return a.Message().FullName() == b.Message().FullName()
	case a.Enum() != nil:
		return a.Enum().FullName() == b.Enum().FullName()
	}
	return true
}

func field(m proto.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return m.ProtoReflect().Descriptor().Fields().ByName(name)
}

// firstField is a message's field with the least number, which is where LiveKit's messages carry their own id; nil if it has
// none.
func firstField(m proto.Message) protoreflect.FieldDescriptor {
	return m.ProtoReflect().Descriptor().Fields().ByNumber(1)
}

func isID(f protoreflect.FieldDescriptor) bool {
	return f != nil && f.Kind() == protoreflect.StringKind && !f.IsList() && strings.HasSuffix(string(f.Name()), "_id")
}
