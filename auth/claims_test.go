package auth_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
)

func yes() *bool { b := true; return &b }
func no() *bool  { b := false; return &b }

// tokens are made as the cases of claims.json say by their names.
var tokens = map[string]func(*auth.AccessToken){
	"nothing": func(*auth.AccessToken) {},
	"a participant": func(t *auth.AccessToken) {
		t.SetIdentity("ann").SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: "studio"})
	},
	"false and unset differ": func(t *auth.AccessToken) {
		t.SetVideoGrant(&auth.VideoGrant{CanPublish: no(), CanSubscribe: yes()})
	},
	"grants without rights": func(t *auth.AccessToken) {
		t.SetVideoGrant(&auth.VideoGrant{}).SetSIPGrant(&auth.SIPGrant{}).SetAgentGrant(&auth.AgentGrant{})
	},
	"set and taken back": func(t *auth.AccessToken) {
		t.SetIdentity("ann").SetIdentity("")
		t.SetVideoGrant(&auth.VideoGrant{RoomJoin: true}).SetVideoGrant(nil)
		t.SetRoomConfig(harmlessConfig()).SetRoomConfig(nil)
		t.SetKindDetails(livekit.ParticipantInfo_FORWARDED).SetKindDetails()
		t.SetAttributes(map[string]string{}).SetAttributes(nil)
	},
	"text that JSON escapes": func(t *auth.AccessToken) {
		t.SetIdentity(`a"\b`).SetName("Ünï ✓ 🎉").SetMetadata("<a href='x'>&\u2028\x00\n</a>")
	},
	"agents": func(t *auth.AccessToken) {
		t.SetAgents(&livekit.RoomAgentDispatch{AgentName: "scribe", Metadata: "m"}, &livekit.RoomAgentDispatch{AgentName: "host"})
	},
	"agents within a room configuration": func(t *auth.AccessToken) {
		t.SetRoomConfig(&livekit.RoomConfiguration{MaxParticipants: 3, Agents: []*livekit.RoomAgentDispatch{{AgentName: "old"}}})
		t.SetAgents(&livekit.RoomAgentDispatch{AgentName: "new"})
	},
	"an empty room configuration": func(t *auth.AccessToken) { t.SetRoomConfig(&livekit.RoomConfiguration{}) },
	"a room configuration":        func(t *auth.AccessToken) { t.SetRoomConfig(harmlessConfig()) },
	"attributes add up": func(t *auth.AccessToken) {
		t.SetAttributes(map[string]string{"a": "1", "b": "1"}).SetAttributes(map[string]string{"b": "2"})
	},
	"everything": everything,
}

// everything sets each claim, and each field of each grant.
func everything(t *auth.AccessToken) {
	t.SetIdentity("ann").SetName("Ann").SetMetadata("m").SetAttributes(map[string]string{"k": "v"})
	t.SetKind(livekit.ParticipantInfo_AGENT).SetKindDetails(livekit.ParticipantInfo_CLOUD_AGENT, livekit.ParticipantInfo_FORWARDED)
	t.SetRoomPreset("preset").SetSha256("c3Vt").SetValidFor(time.Hour)
	t.SetRoomConfig(&livekit.RoomConfiguration{Name: "studio"}).SetAgents(&livekit.RoomAgentDispatch{AgentName: "scribe"})
	v := &auth.VideoGrant{
		RoomCreate: true, RoomList: true, RoomRecord: true, RoomAdmin: true, RoomJoin: true, Room: "studio",
		CanPublish: yes(), CanSubscribe: yes(), CanPublishData: no(), CanUpdateOwnMetadata: no(),
		CanSubscribeMetrics: yes(), CanManageAgentSession: no(),
		IngressAdmin: true, Hidden: true, Recorder: true, Agent: true, DestinationRoom: "annex",
	}
	v.SetCanPublishSources([]livekit.TrackSource{livekit.TrackSource_CAMERA, livekit.TrackSource_SCREEN_SHARE_AUDIO})
	t.SetVideoGrant(v)
	t.SetSIPGrant(&auth.SIPGrant{Admin: true, Call: true})
	t.SetAgentGrant(&auth.AgentGrant{Admin: true, DispatchAdmin: true, SimulationAdmin: true})
	t.SetInferenceGrant(&auth.InferenceGrant{Perform: true})
	t.SetObservabilityGrant(&auth.ObservabilityGrant{Write: true})
	t.SetAgentEndpointGrant(&auth.AgentEndpointGrant{Call: true, AgentName: "scribe", Deployment: "blue"})
	t.SetAgentThreadGrant(&auth.AgentThreadGrant{All: true, Scope: "s", ThreadIDs: []string{"t1", "t2"}, List: true, Create: true,
		Write: true, Read: true, Delete: true, SQL: true})
	t.SetAgentDatabaseGrant(&auth.AgentDatabaseGrant{DatabaseIDs: []string{"d"}, Read: true, Write: true, Delete: true, Create: true, List: true})
}

// What is set is in the token, and nothing else. The times of claims.json are those of a synctest bubble.
func TestClaims(t *testing.T) {
	var golden map[string]map[string]any
	readTable(t, "claims.json", &golden)
	if got, want := slices.Sorted(maps.Keys(tokens)), slices.Sorted(maps.Keys(golden)); !slices.Equal(got, want) {
		t.Fatalf("the test has the cases %q, claims.json has %q", got, want)
	}
	for name, set := range tokens {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				token := auth.NewAccessToken(testKey, testSecret)
				set(token)
				raw := sign(t, token)
				if got := payloadOf(t, raw); !reflect.DeepEqual(got, golden[name]) {
					t.Errorf("claims are\n%v, want\n%v", asJSON(t, got), asJSON(t, golden[name]))
				}
				if header, _, _ := strings.Cut(raw, "."); header != "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" {
					t.Errorf("header is %q", header)
				}
				verifiesAs(t, raw, token.GetGrants())
			})
		})
	}
}

// verifiesAs demands that a token is verified with the claims that it was made of.
func verifiesAs(t *testing.T, raw string, want *auth.ClaimGrants) {
	t.Helper()
	v, err := auth.ParseAPIToken(raw)
	if err != nil {
		t.Fatal(err)
	}
	if v.APIKey() != testKey || v.Identity() != want.Identity {
		t.Errorf("API key and identity are %q and %q", v.APIKey(), v.Identity())
	}
	registered, got, err := v.Verify(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	if registered.Issuer != testKey || registered.Subject != want.Identity {
		t.Errorf("registered claims are %+v", registered)
	}
	if got.String() != want.String() {
		t.Errorf("verified claims are\n%v, want\n%v", got, want)
	}
	if !proto.Equal(got.GetRoomConfiguration(), want.GetRoomConfiguration()) {
		t.Errorf("room configuration is %v, want %v", got.RoomConfig, want.RoomConfig)
	}
}

// The case "everything" leaves no field out, so that claims.json has the name of each.
func TestEverythingIsEverything(t *testing.T) {
	token := auth.NewAccessToken(testKey, testSecret)
	everything(token)
	demandSet(t, "ClaimGrants", reflect.ValueOf(token.GetGrants()).Elem())
}

func demandSet(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		name := path + "." + v.Type().Field(i).Name
		f := v.Field(i)
		if f.IsZero() {
			t.Errorf("%s is not set", name)
		}
		if f.Kind() == reflect.Pointer && f.Elem().Kind() == reflect.Struct && f.Type() != reflect.TypeFor[*auth.RoomConfiguration]() {
			demandSet(t, name, f.Elem())
		}
	}
}

// Whatever a setter is given stays the caller's: it is neither changed nor kept.
func TestSettersCopy(t *testing.T) {
	attributes := map[string]string{"k": "v"}
	video := &auth.VideoGrant{Room: "studio", CanPublish: yes(), CanPublishSources: []string{"camera"}}
	threads := &auth.AgentThreadGrant{ThreadIDs: []string{"t"}}
	databases := &auth.AgentDatabaseGrant{DatabaseIDs: []string{"d"}}
	config := harmlessConfig()
	agent := &livekit.RoomAgentDispatch{AgentName: "scribe"}
	agents := []*livekit.RoomAgentDispatch{agent}

	token := auth.NewAccessToken(testKey, testSecret).SetAttributes(attributes).SetVideoGrant(video).SetAgentThreadGrant(threads).
		SetAgentDatabaseGrant(databases).SetRoomConfig(config).SetAgents(agents...).SetAttributes(map[string]string{"more": "x"})
	if len(attributes) != 1 || !proto.Equal(config, harmlessConfig()) {
		t.Errorf("a setter changed what it was given: %v, %v", attributes, config)
	}
	before := token.GetGrants().String()

	attributes["k"] = "changed"
	video.Room, *video.CanPublish, video.CanPublishSources[0] = "changed", false, "changed"
	threads.ThreadIDs[0], databases.DatabaseIDs[0] = "changed", "changed"
	config.Egress.Room.Layout, config.Tags["t"] = "changed", "changed"
	agent.AgentName, agents[0] = "changed", nil
	grants := token.GetGrants()
	grants.Attributes["k"], grants.Video.Room, grants.RoomConfig.Agents[0].AgentName = "changed", "changed", "changed"

	if after := token.GetGrants().String(); after != before {
		t.Errorf("the token changed with what it was made of:\n%s\n%s", before, after)
	}
}

// Claims that JSON or LiveKit cannot take are errors that name the claim.
func TestInvalidClaims(t *testing.T) {
	const bad = "a\xffb"
	for name, set := range map[string]func(*auth.AccessToken){
		"identity":                    func(t *auth.AccessToken) { t.SetIdentity(bad) },
		"name":                        func(t *auth.AccessToken) { t.SetName(bad) },
		"metadata":                    func(t *auth.AccessToken) { t.SetMetadata(bad) },
		"roomPreset":                  func(t *auth.AccessToken) { t.SetRoomPreset(bad) },
		"sha256":                      func(t *auth.AccessToken) { t.SetSha256(bad) },
		"attributes":                  func(t *auth.AccessToken) { t.SetAttributes(map[string]string{"k": bad}) },
		`attributes is not UTF-8: "a`: func(t *auth.AccessToken) { t.SetAttributes(map[string]string{bad: "v"}) },
		"video.room":                  func(t *auth.AccessToken) { t.SetVideoGrant(&auth.VideoGrant{Room: bad}) },
		"video.destinationRoom":       func(t *auth.AccessToken) { t.SetVideoGrant(&auth.VideoGrant{DestinationRoom: bad}) },
		"video.canPublishSources": func(t *auth.AccessToken) {
			t.SetVideoGrant(&auth.VideoGrant{CanPublishSources: []string{"camera", bad}})
		},
		"agentEndpoint.agentName":  func(t *auth.AccessToken) { t.SetAgentEndpointGrant(&auth.AgentEndpointGrant{AgentName: bad}) },
		"agentEndpoint.deployment": func(t *auth.AccessToken) { t.SetAgentEndpointGrant(&auth.AgentEndpointGrant{Deployment: bad}) },
		"agentThread.scope":        func(t *auth.AccessToken) { t.SetAgentThreadGrant(&auth.AgentThreadGrant{Scope: bad}) },
		"agentThread.threadIds": func(t *auth.AccessToken) {
			t.SetAgentThreadGrant(&auth.AgentThreadGrant{ThreadIDs: []string{"a", bad}})
		},
		"agentDatabase.databaseIds": func(t *auth.AccessToken) {
			t.SetAgentDatabaseGrant(&auth.AgentDatabaseGrant{DatabaseIDs: []string{bad}})
		},
		"roomConfig":           func(t *auth.AccessToken) { t.SetRoomConfig(&livekit.RoomConfiguration{Name: bad}) },
		"roomConfig.agents[1]": func(t *auth.AccessToken) { t.SetAgents(&livekit.RoomAgentDispatch{}, nil) },
		"roomConfig.agents[0]": func(t *auth.AccessToken) {
			t.SetRoomConfig(&livekit.RoomConfiguration{Agents: []*livekit.RoomAgentDispatch{nil}})
		},
		`kind is "99"`:         func(t *auth.AccessToken) { t.SetKind(99) },
		`kindDetails has "-1"`: func(t *auth.AccessToken) { t.SetKindDetails(-1) },
		`canPublishSources has "77"`: func(t *auth.AccessToken) {
			v := &auth.VideoGrant{}
			v.SetCanPublishSources([]livekit.TrackSource{77})
			t.SetVideoGrant(v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			token := auth.NewAccessToken(testKey, testSecret)
			set(token)
			raw, err := token.ToJWT()
			wantKind(t, err, "ErrInvalidClaim")
			if raw != "" || !strings.Contains(err.Error(), name) {
				t.Errorf("%q, %v, want an error that names %s", raw, err, name)
			}
		})
	}
}

// Kinds that this version does not know the name of pass: they are strings in a token.
func TestUnknownNamesPass(t *testing.T) {
	claims := &auth.ClaimGrants{Kind: "hologram", KindDetails: []string{"tall", "forwarded"}, Video: &auth.VideoGrant{CanPublishSources: []string{"smell"}}}
	raw, err := auth.APIKey(testKey, testSecret).Token(background, claims)
	if err != nil {
		t.Fatal(err)
	}
	got, err := auth.VerifyToken(raw, auth.NewSimpleKeyProvider(testKey, testSecret))
	if err != nil {
		t.Fatal(err)
	}
	if got.Kind != "hologram" || got.GetParticipantKind() != livekit.ParticipantInfo_STANDARD {
		t.Errorf("kind is %q, %v", got.Kind, got.GetParticipantKind())
	}
	if details := got.GetKindDetails(); !slices.Equal(details, []livekit.ParticipantInfo_KindDetail{livekit.ParticipantInfo_FORWARDED}) {
		t.Errorf("kind details are %v", details)
	}
	if sources := got.Video.GetCanPublishSources(); !slices.Equal(sources, []livekit.TrackSource{livekit.TrackSource_UNKNOWN}) {
		t.Errorf("sources are %v", sources)
	}
}

// Each value of the enums goes through a token and back.
func TestKinds(t *testing.T) {
	for number := range livekit.ParticipantInfo_Kind_name {
		kind := livekit.ParticipantInfo_Kind(number)
		grants := auth.NewAccessToken(testKey, testSecret).SetKind(kind).GetGrants()
		if got := grants.GetParticipantKind(); got != kind || grants.Kind != strings.ToLower(kind.String()) {
			t.Errorf("%v became %q and %v", kind, grants.Kind, got)
		}
	}
	var details []livekit.ParticipantInfo_KindDetail
	for number := range livekit.ParticipantInfo_KindDetail_name {
		details = append(details, livekit.ParticipantInfo_KindDetail(number))
	}
	if got := auth.NewAccessToken(testKey, testSecret).SetKindDetails(details...).GetGrants().GetKindDetails(); !slices.Equal(got, details) {
		t.Errorf("%v became %v", details, got)
	}
	var none *auth.ClaimGrants
	if none.GetParticipantKind() != 0 || none.GetKindDetails() != nil || none.GetRoomConfiguration() != nil || none.Clone() != nil || none.String() != "<nil>" {
		t.Error("nil claims have a kind")
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
