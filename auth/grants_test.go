package auth_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// What a grant means where it says nothing.
func TestDefaults(t *testing.T) {
	type means struct{ publish, subscribe, data, update, metrics, session bool }
	for name, c := range map[string]struct {
		grant *auth.VideoGrant
		want  means
	}{
		"no grant":                 {nil, means{}},
		"nothing set":              {&auth.VideoGrant{}, means{publish: true, subscribe: true, data: true}},
		"publish false":            {&auth.VideoGrant{CanPublish: no()}, means{subscribe: true}},
		"publish true":             {&auth.VideoGrant{CanPublish: yes()}, means{publish: true, subscribe: true, data: true}},
		"publish false, data true": {&auth.VideoGrant{CanPublish: no(), CanPublishData: yes()}, means{subscribe: true, data: true}},
		"data false":               {&auth.VideoGrant{CanPublishData: no()}, means{publish: true, subscribe: true}},
		"subscribe false":          {&auth.VideoGrant{CanSubscribe: no()}, means{publish: true, data: true}},
		"the others true":          {&auth.VideoGrant{CanUpdateOwnMetadata: yes(), CanSubscribeMetrics: yes(), CanManageAgentSession: yes()}, means{true, true, true, true, true, true}},
		"the others false":         {&auth.VideoGrant{CanUpdateOwnMetadata: no(), CanSubscribeMetrics: no(), CanManageAgentSession: no()}, means{publish: true, subscribe: true, data: true}},
	} {
		v := c.grant
		got := means{v.GetCanPublish(), v.GetCanSubscribe(), v.GetCanPublishData(), v.GetCanUpdateOwnMetadata(),
			v.GetCanSubscribeMetrics(), v.GetCanManageAgentSession()}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		p := v.ToPermission()
		if got := (means{p.CanPublish, p.CanSubscribe, p.CanPublishData, p.CanUpdateMetadata, p.CanSubscribeMetrics, p.CanManageAgentSession}); got != c.want {
			t.Errorf("%s: as a permission %+v, want %+v", name, got, c.want)
		}
		if !v.MatchesPermission(p) || v.MatchesPermission(nil) {
			t.Errorf("%s: does not match its own permission, or matches nil", name)
		}
	}
}

func TestSetters(t *testing.T) {
	for _, allow := range []bool{true, false} {
		v := &auth.VideoGrant{}
		for name, c := range map[string]struct {
			set   func(bool)
			field **bool
		}{
			"CanPublish":            {v.SetCanPublish, &v.CanPublish},
			"CanSubscribe":          {v.SetCanSubscribe, &v.CanSubscribe},
			"CanPublishData":        {v.SetCanPublishData, &v.CanPublishData},
			"CanUpdateOwnMetadata":  {v.SetCanUpdateOwnMetadata, &v.CanUpdateOwnMetadata},
			"CanSubscribeMetrics":   {v.SetCanSubscribeMetrics, &v.CanSubscribeMetrics},
			"CanManageAgentSession": {v.SetCanManageAgentSession, &v.CanManageAgentSession},
		} {
			if *c.field != nil {
				t.Errorf("%s was set before", name)
			}
			c.set(allow)
			if *c.field == nil || **c.field != allow {
				t.Errorf("%s was not set to %t", name, allow)
			}
		}
	}
}

func TestSources(t *testing.T) {
	all := []livekit.TrackSource{livekit.TrackSource_CAMERA, livekit.TrackSource_MICROPHONE, livekit.TrackSource_SCREEN_SHARE,
		livekit.TrackSource_SCREEN_SHARE_AUDIO}
	v := &auth.VideoGrant{}
	v.SetCanPublishSources(all)
	if !slices.Equal(v.CanPublishSources, []string{"camera", "microphone", "screen_share", "screen_share_audio"}) || !slices.Equal(v.GetCanPublishSources(), all) {
		t.Errorf("%v became %q and %v", all, v.CanPublishSources, v.GetCanPublishSources())
	}
	v.SetCanPublishSources(all[:2])
	for i, source := range all {
		if v.GetCanPublishSource(source) != (i < 2) {
			t.Errorf("%v may be published: %t", source, i >= 2)
		}
	}
	v.CanPublishSources = []string{"CAMERA"} // as a token of another's may have it
	if !v.GetCanPublishSource(all[0]) || v.GetCanPublishSource(all[1]) || !slices.Equal(v.GetCanPublishSources(), all[:1]) {
		t.Errorf("%q is %v, and camera %t", v.CanPublishSources, v.GetCanPublishSources(), v.GetCanPublishSource(all[0]))
	}
	v.SetCanPublish(false)
	if v.GetCanPublishSource(all[0]) {
		t.Error("a source may be published where nothing may")
	}
	v.SetCanPublish(true)
	v.SetCanPublishSources(nil)
	if !v.GetCanPublishSource(all[3]) || v.GetCanPublishSources() != nil || v.CanPublishSources != nil {
		t.Error("without a list, not all sources may be published")
	}
	var none *auth.VideoGrant
	if none.GetCanPublishSource(all[0]) || none.GetCanPublishSources() != nil || none.Clone() != nil {
		t.Error("a nil grant allows something")
	}
}

// Every permission goes into a grant and back, one by one and all together.
func TestPermissions(t *testing.T) {
	fields := (&livekit.ParticipantPermission{}).ProtoReflect().Descriptor().Fields()
	var cases []*livekit.ParticipantPermission
	every := &livekit.ParticipantPermission{}
	for i := range fields.Len() {
		one := &livekit.ParticipantPermission{}
		for _, p := range []*livekit.ParticipantPermission{one, every} {
			m := p.ProtoReflect()
			if f := fields.Get(i); f.IsList() {
				p.CanPublishSources = []livekit.TrackSource{livekit.TrackSource_MICROPHONE}
			} else {
				m.Set(f, protoreflect.ValueOfBool(true))
			}
		}
		cases = append(cases, one)
	}
	for _, p := range append(cases, every, &livekit.ParticipantPermission{}) {
		for _, agent := range []bool{false, true} {
			v := &auth.VideoGrant{RoomJoin: true, Room: "r", Agent: agent, CanPublish: yes(), Hidden: true}
			v.UpdateFromPermission(p)
			if !v.MatchesPermission(p) {
				t.Errorf("%+v does not match %v, which it was made from", v, p)
			}
			want := proto.CloneOf(p)
			want.ProtoReflect().Set(fields.ByName("agent"), protoreflect.ValueOfBool(agent)) // only a token makes an agent
			if got := v.ToPermission(); !proto.Equal(got, want) {
				t.Errorf("%v became %v", want, got)
			}
			if !v.RoomJoin || v.Room != "r" {
				t.Errorf("the rest of the grant changed: %+v", v)
			}
			before := v.Clone()
			if v.UpdateFromPermission(nil); !reflect.DeepEqual(v, before) {
				t.Errorf("a nil permission changed the grant to %+v", v)
			}
		}
	}
	for i, p := range cases {
		v := &auth.VideoGrant{}
		v.UpdateFromPermission(p)
		for j, other := range cases {
			if same := i == j; v.MatchesPermission(other) != same {
				t.Errorf("the grant of %v matches %v: %t", p, other, !same)
			}
		}
	}
}

func TestClones(t *testing.T) {
	token := auth.NewAccessToken(testKey, testSecret)
	everything(token)
	grants := token.GetGrants()
	clone := grants.Clone()
	if clone.String() != grants.String() {
		t.Errorf("clone is %v, want %v", clone, grants)
	}
	shareNothing(t, "ClaimGrants", reflect.ValueOf(grants).Elem(), reflect.ValueOf(clone).Elem())
}

// shareNothing demands that no pointer, list or map of two structs is the same.
func shareNothing(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	for i := range a.NumField() {
		name := path + "." + a.Type().Field(i).Name
		switch x, y := a.Field(i), b.Field(i); x.Kind() {
		case reflect.Pointer:
			if x.Pointer() == y.Pointer() {
				t.Errorf("%s is shared", name)
			}
			if x.Elem().Kind() == reflect.Struct && x.Type() != reflect.TypeFor[*auth.RoomConfiguration]() {
				shareNothing(t, name, x.Elem(), y.Elem())
			}
		case reflect.Slice, reflect.Map:
			if x.Pointer() == y.Pointer() {
				t.Errorf("%s is shared", name)
			}
		}
	}
}
