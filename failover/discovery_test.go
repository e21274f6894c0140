package failover_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// When the region list is read, and how often.

// lists makes n calls at once and returns how many lists were asked for meanwhile.
func (w *world) atOnce(n int, rt http.RoundTripper, host string, call failover.Call) []reply {
	w.t.Helper()
	replies := make([]reply, n)
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() { replies[i] = w.post(context.Background(), rt, host, call) })
	}
	all.Wait()
	return replies
}

func TestListIsReadInOneFlight(t *testing.T) {
	for _, age := range []string{"0", "60"} {
		for _, warm := range []bool{false, true} {
			inWorld(t, func(w *world) {
				home, one := w.serve(project, ok), w.serve(region1, after(10*time.Millisecond, ok))
				home.setList(func(rw http.ResponseWriter, r *http.Request) {
					after(50*time.Millisecond, regions(age, region1))(rw, r)
				})
				rt := w.transport()
				if warm {
					known(w, rt, project)
					pass(time.Hour / 2) // stale by now
				}
				home.set(status(503))
				before := len(home.listed())
				for _, r := range w.atOnce(100, rt, project, failover.Call{}) {
					if r.status != 200 || r.body != "from "+region1 {
						t.Errorf("max-age %s, warm %t: %d %q, %v", age, warm, r.status, r.body, r.err)
					}
				}
				if n := len(home.listed()) - before; n > 2 || n == 0 {
					t.Errorf("max-age %s, warm %t: %d region list requests, want 1 or 2", age, warm, n)
				}
				if len(one.asked()) != 100 {
					t.Errorf("%d requests to the region", len(one.asked()))
				}
			})
		}
	}
}

// A caller's own deadline limits its own wait, not the read that others wait for.
func TestOneCallersDeadlineDoesNotEndTheRead(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, status(503))
		w.serve(region1, ok)
		home.setList(after(time.Second, regions("60", region1)))
		rt := w.transport()
		var both sync.WaitGroup
		both.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(300*time.Millisecond, cancel)
			if r := w.post(ctx, rt, project, failover.Call{}); !errors.Is(r.err, context.Canceled) || r.took != 300*time.Millisecond {
				t.Errorf("the one: %d, %v after %v", r.status, r.err, r.took)
			}
		})
		both.Go(func() {
			pass(100 * time.Millisecond)
			if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 || r.took > 1200*time.Millisecond {
				t.Errorf("the other: %d, %v after %v", r.status, r.err, r.took)
			}
		})
		both.Wait()
		if n := len(home.listed()); n != 1 {
			t.Errorf("%d region list requests", n)
		}
	})
}

func TestListIsCached(t *testing.T) {
	for age, fresh := range map[string]time.Duration{"": 5 * time.Minute, "600": 10 * time.Minute, "90": 90 * time.Second} {
		inWorld(t, func(w *world) {
			home := w.serve(project, ok)
			home.setList(regions(age, region1))
			w.serve(region1, ok)
			rt := w.transport()
			known(w, rt, project)
			start := time.Now()
			var reads []time.Duration
			for time.Since(start) < 22*time.Minute {
				pass(5 * time.Second)
				known(w, rt, project)
			}
			for _, l := range home.listed() {
				reads = append(reads, l.at.Sub(start))
			}
			for i := 1; i < len(reads); i++ {
				if gap := reads[i] - reads[i-1]; gap < fresh || gap > fresh+5*time.Second {
					t.Errorf("max-age %q: reads at %v", age, reads)
					break
				}
			}
			if len(reads) < 3 {
				t.Errorf("max-age %q: reads at %v", age, reads)
			}
		})
	}
}

// A list that is stale at once is read ahead of need once a minute, not with each call.
func TestReadAheadOnceAMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, ok)
		home.setList(regions("0", region1))
		rt := w.transport()
		for range 600 { // ten minutes
			known(w, rt, project)
			pass(time.Second)
		}
		if n := len(home.listed()); n != 10 {
			t.Errorf("%d region list requests in ten minutes, want 10", n)
		}
	})
}

func TestReadAheadOfNeed(t *testing.T) {
	tests := []struct {
		name   string
		host   string
		answer http.HandlerFunc
		opts   []failover.Option
		call   failover.Call
		want   int
	}{
		{"a project", project, ok, nil, failover.Call{}, 1},
		{"a project that denies", project, status(403), nil, failover.Call{}, 1},
		{"a project, a call of one attempt", project, ok, nil, failover.Call{Repeat: failover.Once}, 1},
		{"switched off", project, ok, []failover.Option{failover.WithoutPrefetch()}, failover.Call{}, 0},
		{"without failover", project, ok, []failover.Option{failover.Off()}, failover.Call{}, 0},
		{"a call without failover", project, ok, nil, failover.Call{Off: true}, 0},
		{"a Cloud API host", cloud, ok, nil, failover.Call{}, 0},
		{"a foreign host", own, ok, nil, failover.Call{}, 0},
		{"a host of one's own", own, ok, []failover.Option{failover.Hosts(own)}, failover.Call{}, 0},
	}
	for _, test := range tests {
		inWorld(t, func(w *world) {
			s := w.serve(test.host, test.answer)
			rt := w.transport(test.opts...)
			for range 3 {
				w.post(context.Background(), rt, test.host, test.call)
				synctest.Wait()
			}
			if n := len(s.listed()); n != test.want {
				t.Errorf("%s: %d region list requests, want %d", test.name, n, test.want)
			}
		})
	}
}

// Hosts that have no regions are not asked for any, even when they fail.
func TestWhoIsNeverAsked(t *testing.T) {
	for host, opts := range map[string][]failover.Option{
		cloud: nil, "cloud-api.staging.livekit.io": nil, own: nil, "api.example.com": {failover.CloudAPIHosts("api.example.com")},
		"a.example.com": {failover.Origins("http://a.example.com", "http://b.example.com")},
	} {
		inWorld(t, func(w *world) {
			s := w.serve(host, status(503))
			rt := w.transport(opts...)
			for range 3 {
				w.post(context.Background(), rt, host, failover.Call{Repeat: failover.Safe})
			}
			if len(s.listed()) > 0 || len(s.asked()) == 0 {
				t.Errorf("%s: %d region list requests", host, len(s.listed()))
			}
		})
	}
}

func TestListNotFoundIsAnEmptyList(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, status(503))
		rt := w.transport()
		start := time.Now()
		for time.Since(start) < 11*time.Minute {
			w.post(context.Background(), rt, project, failover.Call{})
			pass(10 * time.Second)
		}
		if n := len(home.listed()); n != 3 {
			t.Errorf("%d region list requests in eleven minutes, want one in five minutes", n)
		}
	})
}

func TestFailedReadIsRememberedForASecond(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, status(503))
		home.setList(status(500))
		rt := w.transport()
		w.atOnce(20, rt, project, failover.Call{})
		if n := len(home.listed()); n != 1 {
			t.Errorf("%d region list requests of calls that failed within a second, want 1", n)
		}
		pass(time.Second)
		w.serve(region1, ok)
		home.setList(regions("60", region1))
		if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 {
			t.Errorf("a second later: %d, %v", r.status, r.err)
		}
	})
}

// A stale list of up to an hour is used at once, and refreshed behind; an older one is not used.
func TestStaleList(t *testing.T) {
	tests := []struct {
		age   time.Duration
		stale bool // it is used
	}{{2 * time.Minute, true}, {59 * time.Minute, true}, {61 * time.Minute, false}}
	for _, test := range tests {
		inWorld(t, func(w *world) {
			home, one := w.serve(project, ok), w.serve(region1, ok)
			two := w.serve(region2, ok)
			home.setList(regions("60", region1))
			rt := w.transport()
			known(w, rt, project)
			pass(test.age)
			home.set(status(503))
			home.setList(after(time.Second, regions("60", region2)))
			r := w.post(context.Background(), rt, project, failover.Call{})
			if r.status != 200 {
				t.Fatalf("%d, %v", r.status, r.err)
			}
			if got := len(one.asked()) == 1 && r.took < time.Second; got != test.stale {
				t.Errorf("after %v: the answer is %s, after %v: stale list used %t, want %t", test.age, r.body, r.took, got, test.stale)
			}
			pass(2 * time.Second)
			if n := len(home.listed()); n != 2 {
				t.Errorf("after %v: %d region list requests, want 2", test.age, n)
			}
			home.setList(hang)
			one.set(status(503))
			if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 || r.body != "from "+region2 {
				t.Errorf("after %v: the refreshed list was not used: %d %q, %v", test.age, r.status, r.body, r.err)
			}
			_ = two
		})
	}
}

func TestListTakesTwoSeconds(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, first(status(503), ok))
		home.setList(hang)
		r := w.post(context.Background(), w.transport(), project, failover.Call{})
		if r.status != 200 || r.took < 2*time.Second || r.took > 2200*time.Millisecond {
			t.Errorf("%d, %v after %v, want 2 s and a backoff", r.status, r.err, r.took)
		}
	})
}

// Close ends reads in the background at once.
func TestCloseEndsReads(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, ok)
		gone := make(chan time.Time, 1)
		home.setList(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); gone <- time.Now() })
		rt := w.transport()
		w.post(context.Background(), rt, project, failover.Call{})
		synctest.Wait()
		start := time.Now()
		rt.Close()
		rt.Close()
		synctest.Wait()
		w.idle()
		if at := <-gone; at != start {
			t.Errorf("the read ended %v after Close", at.Sub(start))
		}
		if r := w.post(context.Background(), rt, project, failover.Call{}); r.err == nil {
			t.Error("a call after Close was made")
		}
	})
}

// The request for the list has the call's headers, less those that speak of the call itself.
func TestListHeaders(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, status(503))
		rt := w.transport()
		through := roundTripper(func(req *http.Request) (*http.Response, error) {
			for name, value := range map[string]string{
				"X-Lk-Mock": "{}", "User-Agent": "mine", "Accept": protobuf, "Accept-Encoding": "identity", "Content-Encoding": "identity",
				"Content-Language": "de", "Idempotency-Key": "k", "X-Idempotency-Key": "k", "Te": "trailers", "Twirp-Version": "v8",
				failover.RequestIDHeader: "r", "X-Twirp-Timeout-Ms": "1", "Expect": "", "x-lower": "l",
			} {
				req.Header[name] = []string{value}
			}
			return rt.RoundTrip(req)
		})
		w.post(context.Background(), through, project, failover.Call{})
		list := home.listed()[0].header
		for name, want := range map[string]string{"Authorization": "Bearer " + token, "X-Lk-Mock": "{}", "User-Agent": "mine", "X-Lower": "l", "Twirp-Version": "v8"} {
			if got := list.Values(name); !slices.Equal(got, []string{want}) {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
			list.Del(name)
		}
		list.Del("Accept-Encoding") // net/http's own
		if len(list) > 0 {
			t.Errorf("beside them it has %v", list)
		}
	})
}
