package cloudtest_test

import (
	"net/http"
	"testing"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/internal/rttest"
)

// The Cloud's transport keeps the contract of http.RoundTripper, and so does the engine over it, that is with the hosts of
// LiveKit Cloud, whose home region is broken here.
func TestContract(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			for name, path := range map[string]string{"API": createRoom, "RTC": "/rtc/validate", "another path": "/"} {
				t.Run(name, func(t *testing.T) {
					rttest.Run(t, func(t testing.TB, handler http.Handler) rttest.Site {
						u := newUser(t, start(t, m.opts...))
						u.Region(0).Break(cloudtest.Answer(handler.ServeHTTP))
						return rttest.Site{RoundTripper: u.tr, URL: u.URL + path, Dead: nowhere(u)}
					})
				})
			}
		})
		t.Run(m.name+" with failover", func(t *testing.T) {
			rttest.Run(t, func(t testing.TB, handler http.Handler) rttest.Site {
				u := newUser(t, start(t, m.opts...))
				u.Region(0).Break(cloudtest.Status(503, nil, ""), cloudtest.On(cloudtest.API))
				u.Region(1).Break(cloudtest.Answer(handler.ServeHTTP), cloudtest.On(cloudtest.API))
				rt, err := failover.New(u.Transport())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { rt.Close() })
				if err := rt.ReportRegions(u.URL, []failover.Region{{URL: u.Region(1).URL()}}); err != nil { // for requests without a token
					t.Fatal(err)
				}
				return rttest.Site{RoundTripper: rt, URL: u.URL + createRoom, Dead: nowhere(u), Close: rt.Close}
			})
		})
	}
}

// nowhere is a URL whose host the Cloud does not have.
func nowhere(u *user) string {
	return u.URL[:len(u.URL)-len("demo.livekit.cloud")] + "nowhere.example" + createRoom
}
