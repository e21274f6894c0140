package e2e

import (
	"context"
	"net/http"
	"reflect"
	"testing"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/testdata/servers"
	"github.com/twitchtv/twirp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// unchecked are the services whose grants the test-server does not look at.
var unchecked = map[string]bool{"AgentSimulation": true, "CloudAgent": true, "PhoneNumber": true}

// Every method passes with the grants that lkrpc signs for it, and the same calls fail without them: the test-server checks
// each method's like the real services do.
func TestGrants(t *testing.T) {
	s := servers.TestServer(t, 1)
	t.Setenv("LK_AGENTS_URL", s.URLs[0])
	// Calls that ring a phone take 11 s unless told otherwise.
	quick := lkrpc.WithHeader(http.Header{"X-Lk-Mock": {`{"delayMs": 0}`}})
	signing := newClient(t, s.URLs[0], auth.APIKey(s.Key, s.Secret), quick)
	token, err := auth.NewAccessToken(s.Key, s.Secret).SetVideoGrant(&auth.VideoGrant{}).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	without := newClient(t, s.URLs[0], auth.StaticToken(token), quick)

	called := 0
	eachMethod(t, signing, func(service, method string, call func(context.Context) error) {
		called++
		if err := call(t.Context()); err != nil {
			t.Errorf("%s.%s: %v", service, method, err)
		}
	})
	if called != 83 {
		t.Errorf("%d methods were called, want 83", called)
	}
	eachMethod(t, without, func(service, method string, call func(context.Context) error) {
		err := call(t.Context())
		if unchecked[service] {
			if err != nil {
				t.Errorf("%s.%s without grants: %v; the test-server did not use to look at them", service, method, err)
			}
			return
		}
		wantCode(t, err, twirp.PermissionDenied)
	})
}

// eachMethod calls f for every method of a client, with a request that names something in each of its text fields.
func eachMethod(t *testing.T, c *lkrpc.Client, f func(service, method string, call func(context.Context) error)) {
	t.Helper()
	client := reflect.ValueOf(c).Elem()
	for i := range client.NumField() {
		field := client.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		service := client.Field(i)
		for j := range field.Type.NumMethod() {
			m := field.Type.Method(j)
			f(field.Name, m.Name, func(ctx context.Context) error {
				req := reflect.New(m.Type.In(1).Elem())
				nameAll(req.Interface().(proto.Message))
				out := service.MethodByName(m.Name).Call([]reflect.Value{reflect.ValueOf(ctx), req})
				err, _ := out[1].Interface().(error)
				return err
			})
		}
	}
}

// nameAll gives each text field its own name as a value, so that rooms differ from destination rooms.
func nameAll(m proto.Message) {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); f.Kind() == protoreflect.StringKind && f.Cardinality() != protoreflect.Repeated {
			m.ProtoReflect().Set(f, protoreflect.ValueOfString(string(f.Name())))
		}
	}
}
