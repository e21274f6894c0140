package cloudtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// interfaces name the messages of every method.
var interfaces = map[string]reflect.Type{
	"AgentDispatchService": reflect.TypeFor[livekit.AgentDispatchService](),
	"AgentSimulation":      reflect.TypeFor[livekit.AgentSimulation](),
	"CloudAgent":           reflect.TypeFor[livekit.CloudAgent](),
	"Connector":            reflect.TypeFor[livekit.Connector](),
	"Egress":               reflect.TypeFor[livekit.Egress](),
	"Ingress":              reflect.TypeFor[livekit.Ingress](),
	"PhoneNumberService":   reflect.TypeFor[livekit.PhoneNumberService](),
	"RoomService":          reflect.TypeFor[livekit.RoomService](),
	"SIP":                  reflect.TypeFor[livekit.SIP](),
}

// permission is what a method's token must hold, by the published table.
type permission struct {
	Video, SIP, Agent     []string
	Room, DestinationRoom string // the request's fields that name rooms
}

func permissions(t *testing.T) map[string]permission {
	data, err := os.ReadFile("../../testdata/permissions.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Methods map[string]permission }
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Methods) != 83 {
		t.Fatalf("%d methods in the table, want 83", len(table.Methods))
	}
	return table.Methods
}

// claims builds the grants of a row, without the one that is left out.
func (p permission) claims(t *testing.T, room, destination, leaveOut string) *auth.ClaimGrants {
	t.Helper()
	set := func(names []string) map[string]any {
		m := map[string]any{}
		for _, name := range names {
			if name != leaveOut {
				m[name] = true
			}
		}
		return m
	}
	video := set(p.Video)
	if p.Room != "" {
		video["room"] = room
	}
	if p.DestinationRoom != "" {
		video["destinationRoom"] = destination
	}
	data, err := json.Marshal(map[string]any{"video": video, "sip": set(p.SIP), "agent": set(p.Agent)})
	if err != nil {
		t.Fatal(err)
	}
	claims := &auth.ClaimGrants{}
	if err := json.Unmarshal(data, claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// call sends an RPC as protobuf.
func (u *user) call(t *testing.T, name, token string, req, reply proto.Message) int {
	t.Helper()
	body, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest("POST", u.URL+"/twirp/"+name, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/protobuf")
	r.Header.Set("Authorization", token)
	resp, err := u.tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == 200 {
		if err := proto.Unmarshal(answer, reply); err != nil {
			t.Errorf("%s: the reply is no %T: %v", name, reply, err)
		}
	} else if !strings.Contains(string(answer), `"code":`) {
		t.Errorf("%s: %d without a Twirp error: %s", name, resp.StatusCode, answer)
	}
	return resp.StatusCode
}

// Every method takes the grants of the table and no fewer, and answers with its own message.
func TestGrants(t *testing.T) {
	u := newUser(t, start(t))
	u.works(u.Region(0))
	if err := u.AddParticipant("room", &livekit.ParticipantInfo{Identity: "x"}); err != nil {
		t.Fatal(err)
	}
	for name, p := range permissions(t) {
		service, method, _ := strings.Cut(strings.TrimPrefix(name, "livekit."), "/")
		m, ok := interfaces[service].MethodByName(method)
		if !ok {
			t.Errorf("%s is not in the generated code", name)
			continue
		}
		req := reflect.New(m.Type.In(1).Elem()).Interface().(proto.Message)
		reply := reflect.New(m.Type.Out(0).Elem()).Interface().(proto.Message)
		setText(req, p.Room, "room")
		setText(req, p.DestinationRoom, "other")
		setText(req, "identity", "x")
		setText(req, "destination_identity", "x")

		if got := u.call(t, name, "", req, reply); got != 401 {
			t.Errorf("%s without a token: %d", name, got)
		}
		bearer := func(claims *auth.ClaimGrants) string { return "Bearer " + u.tokenFor(claims) }
		for _, grant := range append(append(p.Video, p.SIP...), p.Agent...) {
			if got := u.call(t, name, bearer(p.claims(t, "room", "other", grant)), req, reply); got != 401 {
				t.Errorf("%s without %s: %d", name, grant, got)
			}
		}
		if p.Room != "" {
			if got := u.call(t, name, bearer(p.claims(t, "another", "other", "")), req, reply); got != 401 {
				t.Errorf("%s with the grant for another room: %d", name, got)
			}
		}
		if p.DestinationRoom != "" {
			if got := u.call(t, name, bearer(p.claims(t, "room", "another", "")), req, reply); got != 401 {
				t.Errorf("%s with the grant for another destination: %d", name, got)
			}
		}
		if got := u.call(t, name, bearer(p.claims(t, "room", "other", "")), req, reply); got == 401 || got >= 500 {
			t.Errorf("%s with all grants: %d", name, got)
		}
		if err := u.AddParticipant("room", &livekit.ParticipantInfo{Identity: "x"}); err != nil { // it may have been moved
			t.Fatal(err)
		}
	}
}

func setText(m proto.Message, name, value string) {
	r := m.ProtoReflect()
	if f := r.Descriptor().Fields().ByName(protoreflect.Name(name)); f != nil && f.Kind() == protoreflect.StringKind {
		r.Set(f, protoreflect.ValueOfString(value))
	}
}

// Tokens that are not the project's are not taken.
func TestBadTokens(t *testing.T) {
	u := newUser(t, start(t))
	claims := &auth.ClaimGrants{Video: &auth.VideoGrant{RoomCreate: true}}
	sign := func(key, secret string) string {
		token, err := auth.APIKey(key, secret).Token(background, claims)
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + token
	}
	for name, header := range map[string]string{
		"another key":    sign("APIanother", u.Secret),
		"another secret": sign(u.Key, "a-secret-that-is-not-the-project's-own"),
		"garbage":        "Bearer garbage",
		"another scheme": "Basic " + u.token,
		"no signature":   "Bearer eyJhbGciOiJub25lIn0.eyJ2aWRlbyI6eyJyb29tQ3JlYXRlIjp0cnVlfX0.",
	} {
		a := u.create(background, u.Region(0), "Authorization", header)
		if a.status != 401 || !strings.Contains(a.body, `"unauthenticated"`) || strings.Contains(a.body, "eyJ") {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if len(u.Effects()) != 0 {
		t.Errorf("effects: %v", u.Effects())
	}
}

// What Twirp's own servers answer to bad requests is answered so here.
func TestBadRequests(t *testing.T) {
	u := newUser(t, start(t))
	for name, test := range map[string]struct {
		path, body, contentType string
		status                  int
	}{
		"unknown method":  {"/twirp/livekit.RoomService/Explode", "{}", "application/json", 404},
		"unknown service": {"/twirp/livekit.Bakery/Bake", "{}", "application/json", 404},
		"broken body":     {createRoom, "{", "application/json", 400},
		"unknown type":    {createRoom, "name=room", "text/plain", 404},
		"no name":         {createRoom, "{}", "application/json", 400},
		"base path":       {"/base" + createRoom, `{"name":"room"}`, "application/json", 200},
		"another path":    {"/elsewhere", "", "", 404},
	} {
		if a := u.post(background, u.Region(0), test.path, test.body, "Content-Type", test.contentType); a.status != test.status {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// What is created by one of the other services has ids, shows in lists, and is recognised when it comes again.
func TestMade(t *testing.T) {
	for _, dedup := range []bool{true, false} {
		var opts []cloudtest.Option
		if !dedup {
			opts = append(opts, cloudtest.WithoutDedup())
		}
		u := newUser(t, start(t, opts...))
		create := func(id string) string {
			a := u.post(background, u.Region(0), "/twirp/livekit.SIP/CreateSIPInboundTrunk", `{"trunk":{"name":"t","numbers":["+1"]}}`, failover.RequestIDHeader, id)
			var trunk struct {
				ID      string `json:"sip_trunk_id"`
				Name    string
				Numbers []string
			}
			if err := json.Unmarshal([]byte(a.body), &trunk); err != nil || !strings.HasPrefix(trunk.ID, "ST_") || trunk.Name != "t" || len(trunk.Numbers) != 1 {
				t.Fatalf("%+v", a)
			}
			return trunk.ID
		}
		first, again, another := create("1"), create("1"), create("2")
		if (first == again) != dedup || first == another {
			t.Errorf("dedup %v: ids %s, %s, %s", dedup, first, again, another)
		}
		want := 3
		if dedup {
			want = 2
		}
		list := u.post(background, u.Region(1), "/twirp/livekit.SIP/ListSIPInboundTrunk", "{}")
		if n := strings.Count(list.body, `"ST_`); n != want || u.effects("SIP/CreateSIPInboundTrunk") != want {
			t.Errorf("dedup %v: %d trunks, effects %v", dedup, n, u.Effects())
		}
		for ids, want := range map[string]int{"": want, `"` + another + `"`: 1, `"ST_unknown"`: 0, `"ST_unknown","` + first + `","` + another + `"`: 2} {
			list := u.post(background, u.Region(1), "/twirp/livekit.SIP/ListSIPInboundTrunk", `{"trunk_ids":[`+ids+`]}`)
			if n := strings.Count(list.body, `"ST_`); list.status != http.StatusOK || n != want {
				t.Errorf("trunks %s: %+v, want %d", ids, list, want)
			}
		}
		update := u.post(background, u.Region(2), "/twirp/livekit.SIP/UpdateSIPInboundTrunk", `{"sip_trunk_id":"`+first+`","replace":{"name":"new","numbers":["+2"]}}`)
		if !strings.Contains(update.body, `"new"`) || !strings.Contains(update.body, first) || strings.Contains(update.body, "+1") {
			t.Errorf("updated: %s", update.body)
		}
		get := u.post(background, u.Region(2), "/twirp/livekit.SIP/GetSIPInboundTrunk", `{"sip_trunk_id":"`+first+`"}`)
		if !strings.Contains(get.body, `"new"`) {
			t.Errorf("got %s", get.body)
		}
		u.post(background, u.Region(0), "/twirp/livekit.SIP/DeleteSIPTrunk", `{"sip_trunk_id":"`+first+`"}`)
		if list = u.post(background, u.Region(0), "/twirp/livekit.SIP/ListSIPInboundTrunk", "{}"); strings.Contains(list.body, first) {
			t.Errorf("listed after it was deleted: %s", list.body)
		}
	}
}

// A call that rings happens as often as it arrives.
func TestCallsAreNotRecognised(t *testing.T) {
	u := newUser(t, start(t))
	for range 2 {
		a := u.post(background, u.Region(0), "/twirp/livekit.SIP/CreateSIPParticipant",
			`{"sip_trunk_id":"ST_1","sip_call_to":"+1","room_name":"room","participant_identity":"p"}`, failover.RequestIDHeader, "same")
		var call struct {
			Room     string `json:"room_name"`
			Identity string `json:"participant_identity"`
			ID       string `json:"sip_call_id"`
		}
		if err := json.Unmarshal([]byte(a.body), &call); err != nil || call.Room != "room" || call.Identity != "p" || !strings.HasPrefix(call.ID, "SCL_") {
			t.Errorf("%+v", a)
		}
	}
	if n := u.effects("SIP/CreateSIPParticipant"); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
	u.post(background, u.Region(0), "/twirp/livekit.Egress/StartWebEgress", `{"url":"https://example.com"}`)
	list := u.post(background, u.Region(0), "/twirp/livekit.Egress/ListEgress", `{}`)
	var egresses struct {
		Items []struct {
			ID string `json:"egress_id"`
		}
	}
	if err := json.Unmarshal([]byte(list.body), &egresses); err != nil || len(egresses.Items) != 1 {
		t.Fatalf("%+v", list)
	}
	for filter, want := range map[string]int{
		`"egress_id":"` + egresses.Items[0].ID + `"`: 1, `"egress_id":"EG_another"`: 0, `"room_name":"another"`: 0,
	} {
		if some := u.post(background, u.Region(0), "/twirp/livekit.Egress/ListEgress", "{"+filter+"}"); strings.Count(some.body, `"EG_`) != want {
			t.Errorf("listed by %s: %s", filter, some.body)
		}
	}
	if stop := u.post(background, u.Region(0), "/twirp/livekit.Egress/StopEgress", `{"egress_id":"`+egresses.Items[0].ID+`"}`); !strings.Contains(stop.body, "EGRESS_ENDING") {
		t.Errorf("stopped: %s", stop.body)
	}
}
