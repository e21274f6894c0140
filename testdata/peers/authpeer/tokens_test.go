package authpeer

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	peer "github.com/livekit/protocol/auth"
	peerkit "github.com/livekit/protocol/livekit"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
)

// peerToken makes LiveKit's token of our claims: each claim set by hand, so that one which is missing on either side shows.
func peerToken(t testing.TB, c *auth.ClaimGrants) *peer.AccessToken {
	t.Helper()
	token := peer.NewAccessToken(key, secret).SetIdentity(c.Identity).SetName(c.Name).SetMetadata(c.Metadata).
		SetAttributes(c.Attributes).SetSha256(c.Sha256).SetRoomPreset(c.RoomPreset)
	if c.Kind != "" {
		token.SetKind(peerkit.ParticipantInfo_Kind(c.GetParticipantKind()))
	}
	var details []peerkit.ParticipantInfo_KindDetail
	for _, d := range c.GetKindDetails() {
		details = append(details, peerkit.ParticipantInfo_KindDetail(d))
	}
	if details != nil {
		token.SetKindDetail(details...)
	}
	if c.RoomConfig != nil {
		token.SetRoomConfig(toPeer(t, c.GetRoomConfiguration()))
	}
	token.SetVideoGrant(convert[peer.VideoGrant](t, c.Video))
	token.SetSIPGrant(convert[peer.SIPGrant](t, c.SIP))
	token.SetAgentGrant(convert[peer.AgentGrant](t, c.Agent))
	token.SetInferenceGrant(convert[peer.InferenceGrant](t, c.Inference))
	token.SetObservabilityGrant(convert[peer.ObservabilityGrant](t, c.Observability))
	token.SetAgentEndpointGrant(convert[peer.AgentEndpointGrant](t, c.AgentEndpoint))
	token.SetAgentThreadGrant(convert[peer.AgentThreadGrant](t, c.AgentThread))
	token.SetAgentDatabaseGrant(convert[peer.AgentDatabaseGrant](t, c.AgentDatabase))
	return token
}

// convert copies a grant to the other side's type, field by field: the names and types must be the same.
func convert[To, From any](t testing.TB, from *From) *To {
	t.Helper()
	if from == nil {
		return nil
	}
	to := new(To)
	a, b := reflect.ValueOf(from).Elem(), reflect.ValueOf(to).Elem()
	if a.NumField() != b.NumField() {
		t.Fatalf("%T has %d fields, %T has %d", from, a.NumField(), to, b.NumField())
	}
	for i := range a.NumField() {
		name := a.Type().Field(i).Name
		b.FieldByName(name).Set(a.Field(i))
	}
	return to
}

// ourToken makes our token of the claims.
func ourToken(c *auth.ClaimGrants) *auth.AccessToken {
	token := auth.NewAccessToken(key, secret).SetIdentity(c.Identity).SetName(c.Name).SetMetadata(c.Metadata).
		SetAttributes(c.Attributes).SetSha256(c.Sha256).SetRoomPreset(c.RoomPreset).SetKindDetails(c.GetKindDetails()...).
		SetRoomConfig(c.GetRoomConfiguration()).SetVideoGrant(c.Video).SetSIPGrant(c.SIP).SetAgentGrant(c.Agent).
		SetInferenceGrant(c.Inference).SetObservabilityGrant(c.Observability).SetAgentEndpointGrant(c.AgentEndpoint).
		SetAgentThreadGrant(c.AgentThread).SetAgentDatabaseGrant(c.AgentDatabase)
	if c.Kind != "" {
		token.SetKind(c.GetParticipantKind())
	}
	return token
}

// claims are tokens to compare: one for each field of each grant, one for each enum value, and combinations.
func claims() map[string]*auth.ClaimGrants {
	all := map[string]*auth.ClaimGrants{
		"nothing":  {},
		"identity": {Identity: "ann"},
		"text":     {Identity: `a"\b`, Name: "Ünï ✓ 🎉", Metadata: "<a>&\u2028\x00"},
		"name":     {Name: "Ann"}, "metadata": {Metadata: "m"}, "sha256": {Sha256: "c3Vt"}, "preset": {RoomPreset: "p"},
		"attributes":  {Attributes: map[string]string{"a": "1", "b": ""}},
		"empty grant": {Video: &auth.VideoGrant{}, SIP: &auth.SIPGrant{}, Agent: &auth.AgentGrant{}},
		"no config":   {RoomConfig: &auth.RoomConfiguration{}},
		"agents": {RoomConfig: (*auth.RoomConfiguration)(&livekit.RoomConfiguration{Agents: []*livekit.RoomAgentDispatch{
			{AgentName: "scribe", Metadata: "m ✓", Attributes: map[string]string{"k": "v"}, Deployment: "blue", RestartPolicy: 1}, {},
		}})},
		"config": {RoomConfig: (*auth.RoomConfiguration)(&livekit.RoomConfiguration{
			Name: "studio", EmptyTimeout: 1, DepartureTimeout: 2, MaxParticipants: 3, Metadata: "m", SyncStreams: true,
			MinPlayoutDelay: 4, MaxPlayoutDelay: 5, Tags: map[string]string{"t": "1"},
			Egress: &livekit.RoomEgress{Room: &livekit.RoomCompositeEgressRequest{Layout: "grid", FileOutputs: []*livekit.EncodedFileOutput{
				{FileType: livekit.EncodedFileType_MP4, Output: &livekit.EncodedFileOutput_S3{S3: &livekit.S3Upload{Bucket: "b"}}},
			}}},
		})},
	}
	for number, name := range livekit.ParticipantInfo_Kind_name {
		all["kind "+name] = auth.NewAccessToken("", "").SetKind(livekit.ParticipantInfo_Kind(number)).GetGrants()
	}
	for number, name := range livekit.ParticipantInfo_KindDetail_name {
		all["detail "+name] = auth.NewAccessToken("", "").SetKindDetails(livekit.ParticipantInfo_KindDetail(number)).GetGrants()
	}
	for number, name := range livekit.TrackSource_name {
		v := &auth.VideoGrant{}
		v.SetCanPublishSources([]livekit.TrackSource{livekit.TrackSource(number)})
		all["source "+name] = &auth.ClaimGrants{Video: v}
	}
	everything := &auth.ClaimGrants{Identity: "ann"}
	grants := reflect.TypeFor[auth.ClaimGrants]()
	for i := range grants.NumField() {
		f := grants.Field(i)
		if f.Type.Kind() != reflect.Pointer || f.Type == reflect.TypeFor[*auth.RoomConfiguration]() {
			continue
		}
		whole := reflect.New(f.Type.Elem())
		for j := range f.Type.Elem().NumField() {
			field := f.Type.Elem().Field(j)
			for _, value := range valuesOf(field.Type) {
				one := reflect.New(f.Type.Elem())
				one.Elem().Field(j).Set(value)
				whole.Elem().Field(j).Set(value)
				c := &auth.ClaimGrants{}
				reflect.ValueOf(c).Elem().Field(i).Set(one)
				all[strings.Join([]string{f.Name, field.Name, asText(value)}, " ")] = c
			}
		}
		reflect.ValueOf(everything).Elem().Field(i).Set(whole)
	}
	all["everything"] = everything
	return all
}

// valuesOf are the values that a field of a grant is tried with.
func valuesOf(t reflect.Type) []reflect.Value {
	switch t {
	case reflect.TypeFor[bool]():
		return []reflect.Value{reflect.ValueOf(true)}
	case reflect.TypeFor[*bool]():
		no, yes := false, true
		return []reflect.Value{reflect.ValueOf(&no), reflect.ValueOf(&yes)}
	case reflect.TypeFor[string]():
		return []reflect.Value{reflect.ValueOf("text ✓")}
	case reflect.TypeFor[[]string]():
		return []reflect.Value{reflect.ValueOf([]string{"camera", "x"})}
	}
	panic("a grant has a field of type " + t.String())
}

func asText(v reflect.Value) string {
	text, err := json.Marshal(v.Interface())
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Both sides write the same claims, but for nbf, which is a minute earlier with ours; each verifies the other's token and reads
// the same from it.
func TestTokens(t *testing.T) {
	all := claims()
	if len(all) < 60 {
		t.Fatalf("there are %d cases only", len(all))
	}
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, err := ourToken(c).ToJWT()
				if err != nil {
					t.Fatal(err)
				}
				theirs, err := peerToken(t, c).ToJWT()
				if err != nil {
					t.Fatal(err)
				}
				a, b := payload(t, ours), payload(t, theirs)
				if a["nbf"] != b["nbf"].(float64)-60 {
					t.Errorf("nbf is %v, LiveKit's %v", a["nbf"], b["nbf"])
				}
				delete(a, "nbf")
				delete(b, "nbf")
				if !reflect.DeepEqual(a, b) {
					t.Errorf("claims are\n%v, LiveKit's\n%v", a, b)
				}
				for _, raw := range []string{ours, theirs} {
					sameRead(t, raw, c)
				}
			})
		})
	}
}

// sameRead verifies a token on both sides and compares what they read.
func sameRead(t *testing.T, raw string, want *auth.ClaimGrants) {
	t.Helper()
	v, err := auth.ParseAPIToken(raw)
	if err != nil {
		t.Fatal(err)
	}
	pv, err := peer.ParseAPIToken(raw)
	if err != nil {
		t.Fatal(err)
	}
	if v.APIKey() != pv.APIKey() || v.Identity() != pv.Identity() {
		t.Errorf("API key and identity are %q and %q, LiveKit's %q and %q", v.APIKey(), v.Identity(), pv.APIKey(), pv.Identity())
	}
	registered, ours, err := v.Verify(secret)
	if err != nil {
		t.Fatal(err)
	}
	peerRegistered, theirs, err := pv.Verify(secret)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(registered, peerRegistered) {
		t.Errorf("registered claims are %v, LiveKit's %v", registered, peerRegistered)
	}
	if ours.String() != want.String() {
		t.Errorf("read %v, want %v", ours, want)
	}
	if a, b := ours.GetRoomConfiguration(), fromPeer(t, theirs.GetRoomConfiguration()); !proto.Equal(a, b) || (a == nil) != (b == nil) {
		t.Errorf("room configuration is %v, LiveKit's %v", a, b)
	}
	if ours.GetParticipantKind() != livekit.ParticipantInfo_Kind(theirs.GetParticipantKind()) {
		t.Errorf("kind is %v, LiveKit's %v", ours.GetParticipantKind(), theirs.GetParticipantKind())
	}
	if a, b := fields(t, ours), fields(t, theirs); !reflect.DeepEqual(a, b) {
		t.Errorf("claims are\n%v, LiveKit's\n%v", a, b)
	}
}

// fields returns a value as JSON has it.
func fields(t *testing.T, v any) (all map[string]any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Tokens that one side refuses, the other refuses too, except where ours is stricter on purpose.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := ourToken(&auth.ClaimGrants{Identity: "ann"})
		raw, err := good.ToJWT()
		if err != nil {
			t.Fatal(err)
		}
		short, err := good.SetValidFor(time.Minute).ToJWT()
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * time.Minute)
		for name, c := range map[string]struct {
			raw, secret string
			ours, peer  bool // accepted
		}{
			"good":                    {raw, secret, true, true},
			"other secret":            {raw, "another", false, false},
			"expired":                 {short, secret, false, false},
			"cut":                     {raw[:len(raw)-1], secret, false, false},
			"one more dot":            {raw + ".", secret, false, false},
			"junk":                    {"junk", secret, false, false},
			"empty":                   {"", secret, false, false},
			"signature in other bits": {raw[:len(raw)-1] + other(raw[len(raw)-1]), secret, false, true},
		} {
			ours := false
			if v, err := auth.ParseAPIToken(c.raw); err == nil {
				_, _, err = v.Verify(c.secret)
				ours = err == nil
			}
			theirs := false
			if v, err := peer.ParseAPIToken(c.raw); err == nil {
				_, _, err = v.Verify(c.secret)
				theirs = err == nil
			}
			if ours != c.ours || theirs != c.peer {
				t.Errorf("%s: accepted by us: %t, by LiveKit: %t; want %t and %t", name, ours, theirs, c.ours, c.peer)
			}
		}
	})
}

// other returns another last character that base64 readers which are not strict take for the same: the signature has 256 bits
// and its 43 characters have 258.
func other(last byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return alphabet[strings.IndexByte(alphabet, last)|1:][:1]
}

func payload(t *testing.T, raw string) map[string]any {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(raw, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var p map[string]any
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}
