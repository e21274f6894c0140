package lkrpc_test

import (
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// permission is a row of the facts: what a method's token must hold.
type permission struct {
	Video, SIP, Agent     []string
	Room, DestinationRoom string // the request's fields that name rooms
}

func permissions(t *testing.T) map[string]permission {
	var facts struct{ Methods map[string]permission }
	load(t, "permissions.json", &facts)
	if len(facts.Methods) != 83 {
		t.Fatalf("%d methods in the facts, want 83", len(facts.Methods))
	}
	return facts.Methods
}

// want is the token's claims for a request whose rooms are named "the-room" and "the-other-room".
func (p permission) want() map[string]any {
	claims := map[string]any{}
	grant := func(name string, fields []string) map[string]any {
		g := map[string]any{}
		for _, f := range fields {
			g[f] = true
		}
		if len(g) > 0 {
			claims[name] = g
		}
		return g
	}
	grant("sip", p.SIP)
	grant("agent", p.Agent)
	video := grant("video", p.Video)
	if p.Room != "" {
		video["room"] = "the-room"
	}
	if p.DestinationRoom != "" {
		video["destinationRoom"] = "the-other-room"
	}
	return claims
}

// request fills the fields of a method's request that name rooms.
func (p permission) request(req proto.Message) proto.Message {
	m := req.ProtoReflect()
	for field, value := range map[string]string{p.Room: "the-room", p.DestinationRoom: "the-other-room"} {
		if field != "" {
			m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(field)), protoreflect.ValueOfString(value))
		}
	}
	return req
}

// eachMethod calls f for every method of every service of the client, with a function that calls it.
func eachMethod(c *lkrpc.Client, f func(name string, req proto.Message, call func(proto.Message) (proto.Message, error))) {
	client := reflect.ValueOf(c).Elem()
	for i := range client.NumField() {
		field := client.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		service := field.Type
		for j := range service.NumMethod() {
			method := client.Field(i).MethodByName(service.Method(j).Name)
			name := "livekit." + service.Name() + "/" + service.Method(j).Name
			req := reflect.New(method.Type().In(1).Elem()).Interface().(proto.Message)
			f(name, req, func(req proto.Message) (proto.Message, error) {
				out := method.Call([]reflect.Value{reflect.ValueOf(background), reflect.ValueOf(req)})
				err, _ := out[1].Interface().(error)
				resp, _ := out[0].Interface().(proto.Message)
				return resp, err
			})
		}
	}
}

// Every method sends a token with exactly the grants of the facts, and no more.
func TestTokenHoldsTheMethodsGrants(t *testing.T) {
	facts := permissions(t)
	rec := &recorder{}
	client := newTestClient(t, "wss://proj.livekit.cloud", rec)
	called := 0
	eachMethod(client, func(name string, req proto.Message, call func(proto.Message) (proto.Message, error)) {
		p, ok := facts[name]
		if !ok {
			t.Errorf("%s is not in the facts", name)
			return
		}
		called++
		if _, err := call(p.request(req)); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for _, r := range rec.requests() {
			if strings.HasPrefix(r.URL.Path, "/settings/") {
				continue
			}
			if got := path.Base(path.Dir(r.URL.Path)) + "/" + path.Base(r.URL.Path); got != name {
				t.Errorf("%s was sent to %s", name, got)
			}
			claims := claimsOf(t, r)
			for _, registered := range []string{"iss", "nbf", "exp", "iat"} {
				delete(claims, registered)
			}
			if want := p.want(); !reflect.DeepEqual(claims, want) {
				got, _ := json.Marshal(claims)
				wanted, _ := json.Marshal(want)
				t.Errorf("%s: grants %s, want %s", name, got, wanted)
			}
		}
		rec.mu.Lock()
		rec.seen = nil
		rec.mu.Unlock()
	})
	if called != len(facts) {
		t.Errorf("%d methods called, want %d", called, len(facts))
	}
}

// A nil request, and an empty room where the grant is for one room, are local errors.
func TestRequestsThatCannotBeSigned(t *testing.T) {
	facts := permissions(t)
	client := newTestClient(t, "wss://proj.livekit.cloud", roundTripper(func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s was sent", r.URL)
		return answer(r, 200, "application/protobuf", ""), nil
	}))
	eachMethod(client, func(name string, req proto.Message, call func(proto.Message) (proto.Message, error)) {
		_, err := call(reflect.Zero(reflect.TypeOf(req)).Interface().(proto.Message))
		wantLocal(t, name+" with nil", err, "nil")
		p := facts[name]
		if contains(p.Video, "roomAdmin") {
			_, err := call(req)
			wantLocal(t, name+" without a room", err, "Room")
		}
		if p.DestinationRoom != "" {
			half := p
			half.DestinationRoom = ""
			_, err := call(half.request(req))
			wantLocal(t, name+" without a second room", err, "DestinationRoom")
		}
	})
}

func wantLocal(t *testing.T, what string, err error, says string) {
	t.Helper()
	e, ok := err.(*lkrpc.Error)
	if !ok || e.Code() != twirp.InvalidArgument || !strings.Contains(e.Msg(), says) || e.OutcomeUnknown || len(e.Attempts) > 0 {
		t.Errorf("%s: %v, want a local invalid_argument that says %q", what, err, says)
	}
	if ok && (e.Service == "" || e.Method == "") {
		t.Errorf("%s: the error names no method: %v", what, err)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// Every method of the schema can be called on Client.
func TestServicesAreFields(t *testing.T) {
	fields := map[string]bool{}
	eachMethod(newTestClient(t, "wss://proj.livekit.cloud", &recorder{}), func(name string, _ proto.Message, _ func(proto.Message) (proto.Message, error)) {
		fields[name] = true
	})
	livekit.Registry.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		for i := range fd.Services().Len() {
			s := fd.Services().Get(i)
			for j := range s.Methods().Len() {
				if name := string(s.FullName()) + "/" + string(s.Methods().Get(j).Name()); !fields[name] {
					t.Errorf("%s cannot be called on Client", name)
				}
			}
		}
		return true
	})
}
