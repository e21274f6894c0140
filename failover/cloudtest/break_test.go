package cloudtest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

func TestOn(t *testing.T) {
	tests := []struct {
		pattern, path string
		want          bool
	}{
		{cloudtest.API, "/twirp/livekit.RoomService/ListRooms", true},
		{cloudtest.API, "/base/twirp/livekit.SIP/ListSIPTrunk", true},
		{cloudtest.API, "/settings/regions", false},
		{cloudtest.RTC, "/rtc", true},
		{cloudtest.RTC, "/rtc/v1/validate", true},
		{cloudtest.RTC, "/rtcx", false},
		{cloudtest.RTC, "/twirp/livekit.RoomService/ListRooms", false},
		{cloudtest.RegionList, "/settings/regions", true},
		{cloudtest.RegionList, "/settings/regions/x", false},
		{"RoomService/ListRooms", "/twirp/livekit.RoomService/ListRooms", true},
		{"RoomService/ListRooms", "/base/twirp/livekit.RoomService/ListRooms", true},
		{"RoomService/List", "/twirp/livekit.RoomService/ListRooms", false},
		{"RoomService/", "/twirp/livekit.RoomService/ListRooms", true},
		{"SIP/", "/twirp/livekit.RoomService/ListRooms", false},
		{"/rtc/validate", "/rtc/validate", true},
		{"/rtc/", "/rtc/validate", true},
		{"/rtc/validate", "/rtc", false},
		{"", "/", false},
		{"", "/rtc", false},
	}
	cloud := start(t, cloudtest.HTTP1())
	u, h := newUser(t, cloud), cloud.Region(0)
	for _, test := range tests {
		b := h.Break(cloudtest.Status(444, nil, ""), cloudtest.On("nothing", test.pattern))
		r, _ := http.NewRequest("GET", h.URL()+test.path, nil)
		if got := u.send(r).status == 444; got != test.want {
			t.Errorf("On(%q) fits %s: %v, want %v", test.pattern, test.path, got, test.want)
		}
		b.Clear()
	}
}

// A fault strikes where all of its conditions hold, and nowhere else.
func TestConditions(t *testing.T) {
	broken := cloudtest.Status(500, nil, "")
	tests := []struct {
		name    string
		matches []cloudtest.Match
		want    string // one letter a second: x broken, . well
	}{
		{"always", nil, "xxxxxxxx"},
		{"nil is no condition", []cloudtest.Match{nil, cloudtest.When(nil), cloudtest.If(nil)}, "xxxxxxxx"},
		{"twice", []cloudtest.Match{cloudtest.Times(2)}, "xx......"},
		{"never", []cloudtest.Match{cloudtest.Times(0)}, "........"},
		{"but not the first three", []cloudtest.Match{cloudtest.Skip(3)}, "...xxxxx"},
		{"the fourth", []cloudtest.Match{cloudtest.Skip(3), cloudtest.Times(1)}, "...x...."},
		{"later", []cloudtest.Match{cloudtest.Later(2500 * time.Millisecond)}, "...xxxxx"},
		{"for a while", []cloudtest.Match{cloudtest.For(2500 * time.Millisecond)}, "xxx....."},
		{"later for a while", []cloudtest.Match{cloudtest.Later(1500 * time.Millisecond), cloudtest.For(3 * time.Second)}, "..xxx..."},
		{"elsewhere", []cloudtest.Match{cloudtest.On("RoomService/ListRooms")}, "........"},
		{"here, twice", []cloudtest.Match{cloudtest.On("RoomService/ListRooms", "RoomService/CreateRoom"), cloudtest.Times(2)}, "xx......"},
		{"if", []cloudtest.Match{cloudtest.If(func(r *http.Request) bool { return r.Header.Get("Nth") != "aa" })}, "xx.xxxxx"},
		{"here, and if", []cloudtest.Match{cloudtest.On("RoomService/"), cloudtest.If(func(*http.Request) bool { return false })}, "........"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, u *user) {
				h := u.Region(0)
				b := h.Break(broken, test.matches...)
				got := ""
				for i := range len(test.want) {
					switch a := u.create(background, h, "Nth", strings.Repeat("a", i)); a.status {
					case 500:
						got += "x"
					case 200:
						got += "."
					default:
						t.Fatalf("%+v", a)
					}
					<-time.After(time.Second)
				}
				if got != test.want || b.Hits() != strings.Count(test.want, "x") {
					t.Errorf("got %s with %d hits, want %s", got, b.Hits(), test.want)
				}
				u.works(u.Region(1))
			})
		})
	}
}

func TestNewestFaultWins(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(1)
		old := h.Break(cloudtest.Status(501, nil, ""))
		h.Break(cloudtest.Status(502, nil, ""), cloudtest.Times(1))
		newest := h.Break(cloudtest.Status(503, nil, ""))
		for _, step := range []struct {
			do   func()
			want int
		}{
			{func() {}, 503},
			{newest.Clear, 502},
			{newest.Clear, 501}, // clearing again is harmless
			{old.Clear, 200},
			{func() { h.Break(cloudtest.Status(504, nil, "")) }, 504},
			{u.Heal, 200},
		} {
			step.do()
			if a := u.create(background, h); a.status != step.want {
				t.Errorf("got %d, want %d", a.status, step.want)
			}
		}
	})
}

// A timer that was cleared away breaks nothing.
func TestClearBeforeItBegins(t *testing.T) {
	inBubble(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		h.Break(cloudtest.Drop(), cloudtest.Later(time.Second)).Clear()
		h.Refuse(cloudtest.Later(time.Second)).Clear()
		u.works(h)
		<-time.After(time.Minute)
		u.works(h)
	})
}
