package cloudtest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/encoding/protojson"
)

// list reads a region list as LiveKit's clients do.
func (u *user) list(h *cloudtest.Host) (urls []string, header http.Header) {
	u.t.Helper()
	a := u.get(background, h.URL()+cloudtest.RegionList)
	if a.err != nil || a.status != 200 {
		u.t.Fatalf("the region list: %+v", a)
	}
	var settings livekit.RegionSettings
	if err := protojson.Unmarshal([]byte(a.body), &settings); err != nil {
		u.t.Fatal(err)
	}
	for _, region := range settings.GetRegions() {
		urls = append(urls, region.GetUrl())
	}
	return urls, a.header
}

func TestRegionList(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		var want []string
		for i, h := range u.Regions() {
			if h != u.Region(i) || !strings.HasPrefix(h.URL(), "http") || !strings.Contains(h.Name(), h.RegionName()) && i > 0 {
				t.Errorf("region %d is %v", i, h)
			}
			want = append(want, h.URL())
		}
		for _, h := range u.Regions() {
			urls, header := u.list(h)
			if strings.Join(urls, " ") != strings.Join(want, " ") || len(urls) != 3 || header.Get("Cache-Control") != "max-age=300" {
				t.Errorf("%s lists %q with %v", h, urls, header)
			}
		}
		if a := u.get(background, u.API().URL()+cloudtest.RegionList); a.status != 404 {
			t.Errorf("the API host has a list: %+v", a)
		}
		stranger := *u
		stranger.token = "eyJhbGciOiJIUzI1NiJ9.e30.x"
		if a := stranger.get(background, u.URL+cloudtest.RegionList); a.status != 401 {
			t.Errorf("the list without a token: %+v", a)
		}
	})
}

func TestListRegions(t *testing.T) {
	u := newUser(t, start(t))
	u.ListRegions(failover.Region{Name: "x", URL: "https://evil.example", Distance: 1 << 60}, failover.Region{URL: "not a url"})
	u.SetListHeader(http.Header{"Cache-Control": {"max-age=0"}})
	u.Pin() // has no say in it
	if urls, header := u.list(u.Region(0)); strings.Join(urls, "|") != "https://evil.example|not a url" || header.Get("Cache-Control") != "max-age=0" {
		t.Errorf("listed %q with %v", urls, header)
	}
	u.ListRegions()
	if urls, _ := u.list(u.Region(0)); len(urls) != 0 {
		t.Errorf("listed %q, want none", urls)
	}
	u.ListOwnRegions()
	u.Unpin()
	if urls, _ := u.list(u.Region(0)); len(urls) != 3 {
		t.Errorf("listed %q, want three", urls)
	}
}

func TestPin(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		home, other := u.Region(0), u.Region(2)
		u.Pin(other)
		if a := u.create(background, home); a.status != 451 || u.effects("RoomService/CreateRoom") != 0 {
			t.Errorf("an API call elsewhere: %+v", a)
		}
		for _, path := range []string{"/rtc", "/rtc/validate"} {
			if a := u.get(background, home.URL()+path); a.status != 403 {
				t.Errorf("%s elsewhere: %+v", path, a)
			}
		}
		if urls, _ := u.list(home); len(urls) != 1 || urls[0] != other.URL() {
			t.Errorf("listed %q", urls)
		}
		u.works(other)
		u.works(u.API())
		if a := u.get(background, other.URL()+"/rtc/validate"); a.status != 200 {
			t.Errorf("/rtc/validate in the allowed region: %+v", a)
		}
		u.Pin()
		if a := u.create(background, other); a.status != 451 {
			t.Errorf("nothing is allowed, and yet: %+v", a)
		}
		u.Unpin()
		u.works(home)
	})
}

func TestOptions(t *testing.T) {
	for name, opts := range map[string][]cloudtest.Option{
		`region "a b"`:                 {cloudtest.Regions("a b")},
		`region "x" is named twice`:    {cloudtest.Regions("x", "y", "x")},
		`Regions names none`:           {cloudtest.Regions()},
		`option 2 is nil`:              {cloudtest.HTTP1(), nil},
		`region "": a name is made of`: {cloudtest.Regions("")},
	} {
		if c, err := cloudtest.Start(opts...); err == nil || c != nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
	names := make([]string, 20)
	for i := range names {
		names[i] = "r" + string(rune('a'+i))
	}
	u := newUser(t, start(t, cloudtest.Regions(names...)))
	if urls, _ := u.list(u.Region(0)); len(urls) != 20 || u.Region(20) != nil || u.Region(-1) != nil {
		t.Errorf("%d regions", len(urls))
	}
	if _, err := u.AddHost("demo.livekit.cloud"); err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("AddHost of a host that is there: %v", err)
	}
	for _, name := range []string{"", ".", "https://x", "a:1/", "sfu.example.com:443", "a..b", ".a", "a..", "a b", "-a.example", "a-.example", "*.example.com", "a@b",
		"a?b", "a\nb", "\xff", "höst.example", "[::1]", "fe80::1%eth0", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 127) + "example"} {
		if _, err := u.AddHost(name); err == nil || !strings.Contains(err.Error(), "give a name") {
			t.Errorf("AddHost(%q): %v, want an error that says what to give", name, err)
		}
	}
	for _, name := range []string{"localhost", "a-b.example", "my_sfu.example", "xn--hst-sna.example", "::1", "192.0.2.1", strings.Repeat("a", 63) + ".example."} {
		if _, err := u.AddHost(name); err != nil {
			t.Errorf("AddHost(%q): %v", name, err)
		}
	}
}

// The record tells what arrived, and keeps no token.
func TestRecord(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(1)
		u.create(background, h, failover.RequestIDHeader, "id-1", "X-Mine", "yes")
		u.get(background, h.URL()+"/rtc/validate?access_token=secret")
		all := u.Requests()
		if len(all) != 2 {
			t.Fatalf("%d requests", len(all))
		}
		q := all[0]
		if q.Host != h.Name() || q.Region != "frankfurt" || q.Authority != h.Name() || q.Method != "POST" || q.Path != createRoom ||
			q.RPC != "RoomService/CreateRoom" || q.RequestID != "id-1" || !q.Token || q.Status != 200 || !q.Effect || q.Fault != "" ||
			q.TLS != strings.HasPrefix(u.URL, "https") || q.Header.Get("X-Mine") != "yes" || !strings.Contains(string(q.Body), "0123456789") || q.Time.IsZero() {
			t.Errorf("recorded: %+v", q)
		}
		if text := fmt.Sprintf("%+v", all); strings.Contains(text, u.token) || strings.Contains(text, "secret") {
			t.Errorf("a token is in the record: %s", text)
		}
		if e := u.Effects(); len(e) != 1 || e[0].Host != h.Name() || e[0].RPC != "RoomService/CreateRoom" || e[0].RequestID != "id-1" || e[0].Time.Before(q.Time) {
			t.Errorf("effects: %+v", e)
		}
	})
}
