package failover_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

// A region list may say anything: the home region fails once, the list is read, and the token goes only where it may.

// strangers are hosts that are there, and that a list must not bring a request to.
var strangers = []string{"evil.example.com", "demo.livekit.cloud.evil.example.com", "notlivekit.cloud", "livekit.cloud", "10.0.0.1"}

// entries make a region list of URLs.
func entries(urls ...string) (list []failover.Region) {
	for _, u := range urls {
		list = append(list, failover.Region{Name: "x", URL: u, Distance: 1})
	}
	return list
}

// listing breaks the home's region list.
func listing(f cloudtest.Fault) func(*user) {
	return func(u *user) { u.home.Break(f, cloudtest.On(cloudtest.RegionList)) }
}

// naming makes the Cloud list URLs, the second region at the place of "good".
func naming(urls ...string) func(*user) {
	return func(u *user) {
		urls := slices.Clone(urls)
		for i := range urls {
			if urls[i] == "good" {
				urls[i] = "https://" + u.second.Name()
			}
		}
		u.ListRegions(entries(urls...)...)
	}
}

// huge is a list that begins well and does not end within 64 MiB.
func huge(u *user) {
	u.home.Break(cloudtest.Answer(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"regions":[{"region":"x","url":"https://%s"}`, u.second)
		block := strings.Repeat(`,{"region":"y","url":"https://evil.example.com"}`, 1000)
		for range 64 << 20 / len(block) {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	}), cloudtest.On(cloudtest.RegionList))
}

func toward(url string) cloudtest.Fault {
	return cloudtest.Status(http.StatusTemporaryRedirect, http.Header{"Location": {url}}, "")
}

var hostileLists = []struct {
	name string
	list func(*user)
	good bool // the second region is in it, and is used
}{
	{"a foreign host", naming("https://evil.example.com", "good"), true},
	{"look-alikes", naming("https://demo.livekit.cloud.evil.example.com", "https://notlivekit.cloud", "https://livekit.cloud",
		"https://evil.example.com/.livekit.cloud", "https://evil.example.com?.livekit.cloud", "https://evil.example.com#.livekit.cloud",
		`https://evil.example.com\.livekit.cloud`, "good"), true},
	{"http for https", naming("http://demo.frankfurt.production.livekit.cloud", "ws://demo.tokyo.production.livekit.cloud", "good"), true},
	{"user information", naming("https://demo.livekit.cloud@evil.example.com", "https://demo.livekit.cloud:x@evil.example.com",
		"https://u:p@demo.tokyo.production.livekit.cloud", "good"), true},
	{"ws to an address", naming("ws://10.0.0.1", "wss://10.0.0.1:443", "ws://10.0.0.1/.livekit.cloud", "good"), true},
	{"the Cloud API", naming("https://cloud-api.livekit.io", "good"), true},
	{"no URLs", naming("", "::", "https://", "javascript:alert(1)", "//evil.example.com", "good"), true},
	{"10,000 entries", func(u *user) {
		list := entries("https://evil.example.com", "https://"+u.second.Name())
		for i := range 10_000 {
			list = append(list, failover.Region{URL: fmt.Sprintf("https://r%d.livekit.cloud", i)})
		}
		u.ListRegions(list...)
	}, true},
	{"64 MiB", huge, true},
	{"64 MiB that say nothing", listing(cloudtest.Flood(64 << 20)), false},
	{"without an end", listing(cloudtest.Flood(-1)), false},
	{"a drip", listing(cloudtest.Drip(time.Second)), false},
	{"no answer", listing(cloudtest.Hang()), false},
	{"HTML", listing(cloudtest.Status(200, http.Header{"Content-Type": {"text/html"}}, "<html>https://evil.example.com</html>")), false},
	{"cut off", listing(cloudtest.Truncate()), false},
	{"a redirect to plain HTTP", listing(toward("http://demo.livekit.cloud/settings/regions")), false},
	{"a redirect to another host", listing(toward("https://evil.example.com/settings/regions")), false},
	{"a redirect to another region", listing(toward("https://demo.tokyo.production.livekit.cloud/settings/regions")), false},
}

func TestHostileRegionLists(t *testing.T) {
	const listTime = 2 * time.Second
	down := cloudtest.Status(http.StatusServiceUnavailable, nil, "maintenance")
	for _, test := range hostileLists {
		// Plain HTTP is served as well, so that a request which falls for it arrives.
		plain := setup{cloud: []cloudtest.Option{cloudtest.PlainHTTP()}, url: "https://demo.livekit.cloud"}
		for _, recovers := range []bool{true, false} { // the home region answers the second request, or none
			onCloud(t, plain, func(u *user) {
				outside := []*cloudtest.Host{u.API(), u.third}
				for _, name := range strangers {
					h, err := u.AddHost(name)
					if err != nil {
						t.Fatal(err)
					}
					outside = append(outside, h)
				}
				test.list(u)
				fault := u.home.Break(down, cloudtest.On(cloudtest.API))
				if recovers {
					fault.Clear()
					u.home.Break(down, cloudtest.On(cloudtest.API), cloudtest.Times(1))
				}
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				o := u.dispatch(ctx)
				if o.took > listTime+(200+400)*time.Millisecond {
					t.Errorf("%s: decided after %v", test.name, o.took)
				}
				if served := o.err == nil; served != (test.good || recovers) {
					t.Errorf("%s: %v", test.name, o.err)
				}
				if !test.good && !recovers && o.failure(t).HTTPStatus != http.StatusServiceUnavailable {
					t.Errorf("%s: %v, want the error of the home region", test.name, o.err)
				}
				if used := len(calls(u.second)) == 1; used != test.good {
					t.Errorf("%s: the good region was used: %t", test.name, used)
				}
				if n := u.lists.bytes.Load(); n > 64<<10 {
					t.Errorf("%s: %d bytes of the list were read", test.name, n)
				}
				wantAtHome(t, test.name, u, outside)
			})
		}
	}
}

// wantAtHome demands that every request went over TLS to the home region or, for the API, to the second one; and that the hosts
// outside were not so much as dialled.
func wantAtHome(t *testing.T, name string, u *user, outside []*cloudtest.Host) {
	t.Helper()
	for _, q := range u.Requests() {
		switch {
		case !q.TLS || q.Authority != q.Host:
			t.Errorf("%s: a request in the clear or for another host: %+v", name, q)
		case q.Host == u.home.Name() && (q.RPC != "" || q.Path == cloudtest.RegionList):
		case q.Host == u.second.Name() && q.RPC != "":
		default:
			t.Errorf("%s: %s was asked for %s", name, q.Host, q.Path)
		}
	}
	for _, h := range outside {
		if n := len(h.Dials()); n > 0 {
			t.Errorf("%s: %d dials to %s", name, n, h)
		}
	}
}
