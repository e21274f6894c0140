package failover_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// A relay that lost its state passes no byte on the connections that it had, and says nothing; new ones are fine. The call
// that meets this succeeds on the same host by a new connection, and no later call is sent over the dead one.
func TestFrozenConnection(t *testing.T) {
	noPings := &http.HTTP2Config{SendPingTimeout: time.Hour}
	tests := []struct {
		name   string
		scheme string
		http2  *http.HTTP2Config
		call   failover.Call
		most   time.Duration // that the call may take
	}{
		// Pings find it after 4 s.
		{"HTTP/2, safe", "https://", nil, classes["safe"], 4200 * time.Millisecond},
		{"HTTP/2, create", "https://", nil, classes["overtaken"], 4200 * time.Millisecond},
		{"HTTP/2, keyed", "https://", nil, classes["keyed"], 4200 * time.Millisecond},
		// Without them, patience runs out after 5 s, and the region list may have to be read.
		{"HTTP/2 without pings, safe", "https://", noPings, classes["safe"], 7400 * time.Millisecond},
		{"HTTP/2 without pings, create", "https://", noPings, classes["overtaken"], 7400 * time.Millisecond},
		{"HTTP/1.1, safe", "http://", nil, classes["safe"], 5200 * time.Millisecond},
		{"HTTP/1.1, create", "http://", nil, classes["overtaken"], 5200 * time.Millisecond},
	}
	for _, test := range tests {
		for _, host := range []string{project, cloud} {
			for _, opts := range [][]failover.Option{nil, {failover.WithoutPrefetch()}} {
				t.Run(test.name+" to "+host, func(t *testing.T) {
					inWorld(t, func(w *world) {
						s := w.serve(host, ok)
						if test.scheme == "https://" {
							w.secure().client.HTTP2 = test.http2
						}
						rt := w.transport(opts...)
						known(w, rt, test.scheme+host)
						w.net.Freeze(host + ":80")
						w.net.Freeze(host + ":443")
						r := w.post(within(w, 10*time.Second), rt, test.scheme+host, test.call)
						if r.status != 200 || r.took > test.most {
							t.Fatalf("%d, %v after %v, want at most %v", r.status, r.err, r.took, test.most)
						}
						asked := s.asked()
						if len(asked) != 2 || asked[0].from == asked[1].from {
							t.Errorf("%d requests arrived, want 2, each over its own connection", len(asked))
						}
						for range 20 {
							if r := w.post(context.Background(), rt, test.scheme+host, test.call); r.status != 200 || r.took > 0 {
								t.Errorf("a later call: %d, %v after %v", r.status, r.err, r.took)
							}
							pass(time.Second)
						}
						if n := w.net.Most(); n > 3 { // the dead one, the new one, and the region list's
							t.Errorf("%d connections at one time", n)
						}
					})
				})
			}
		}
	}
}

// What was written to a frozen connection may have arrived: a Once call is not repeated, but the calls after it are not sent
// over what is dead.
func TestFrozenConnectionAndOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve(project, ok)
		rt := w.secure().transport()
		known(w, rt, "https://"+project)
		w.net.Freeze(project + ":443")
		r := w.post(within(w, 10*time.Second), rt, "https://"+project, failover.Call{Repeat: failover.Once})
		if r.err == nil || !r.trail.OutcomeUnknown || r.took != 4*time.Second {
			t.Errorf("%d, %v after %v", r.status, r.err, r.took)
		}
		synctest.Wait()
		if r := w.post(context.Background(), rt, "https://"+project, failover.Call{Repeat: failover.Once}); r.status != 200 || r.took > 0 {
			t.Errorf("the next call: %d, %v after %v", r.status, r.err, r.took)
		}
		if n := len(s.asked()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// With regions to go to, a frozen home is left, and taken back later over a new connection.
func TestFrozenHomeIsTakenBack(t *testing.T) {
	inWorld(t, func(w *world) {
		home, one := w.serve(project, ok), w.serve(region1, ok)
		home.setList(regions("3600", "https://"+region1))
		rt := w.secure().transport()
		known(w, rt, "https://"+project)
		w.net.Freeze(project + ":443")
		r := w.post(within(w, 10*time.Second), rt, "https://"+project, create)
		if r.status != 200 || r.body != "from "+region1 {
			t.Fatalf("%d %q, %v", r.status, r.body, r.err)
		}
		before := len(home.asked())
		pass(time.Minute)
		for range 3 {
			if r := w.post(context.Background(), rt, "https://"+project, create); r.status != 200 || r.took > 0 {
				t.Errorf("a later call: %d, %v after %v", r.status, r.err, r.took)
			}
		}
		if n := len(home.asked()) - before; n == 0 {
			t.Errorf("home was not taken back; the region had %d requests", len(one.asked()))
		}
	})
}
