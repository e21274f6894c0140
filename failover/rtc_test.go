package failover_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// RTC connections: through RoundTrip, and through Connect with a dial function of the caller's. What is the same for both is
// tested through both.

const join = "/rtc/v1"

// upgraded takes a connection as a WebSocket server does, and then echoes lines.
func upgraded(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		io.WriteString(conn, r.Host+" "+line)
	}
}

// signal is a connection that was made.
type signal struct {
	io.ReadWriteCloser
	took time.Duration
}

// echo sends a line and wants it back from a host.
func (s *signal) echo(t *testing.T, from string) {
	t.Helper()
	if _, err := io.WriteString(s, "hello\n"); err != nil {
		t.Errorf("writing: %v", err)
		return
	}
	line, err := bufio.NewReader(s).ReadString('\n')
	if want := from + " hello\n"; line != want || err != nil {
		t.Errorf("read %q, %v, want %q", line, err, want)
	}
}

// upgradeRequest asks for a WebSocket.
func upgradeRequest(ctx context.Context, url string) *http.Request {
	req := must(http.NewRequestWithContext(ctx, http.MethodGet, url, nil))
	req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Key": {"x"}, "Sec-Websocket-Version": {"13"}}
	return req
}

// connector makes a connection to a project's host, one way or the other. status is the last refusal's.
type connector func(w *world, ctx context.Context, rt *failover.Transport, host string) (s *signal, status int, err error)

var ways = map[string]connector{
	"RoundTrip": func(w *world, ctx context.Context, rt *failover.Transport, host string) (*signal, int, error) {
		start := time.Now()
		resp, err := rt.RoundTrip(upgradeRequest(ctx, "http://"+host+join+"?access_token="+token))
		if err != nil {
			return nil, 0, err
		}
		if resp.StatusCode != http.StatusSwitchingProtocols {
			resp.Body.Close()
			return nil, resp.StatusCode, nil
		}
		return &signal{resp.Body.(io.ReadWriteCloser), time.Since(start)}, 101, nil
	},
	"Connect": func(w *world, ctx context.Context, rt *failover.Transport, host string) (s *signal, status int, err error) {
		start := time.Now()
		err = rt.Connect(ctx, "ws://"+host, token, func(ctx context.Context, url string) error {
			body, err := w.dial(ctx, url)
			if err == nil {
				s = &signal{body, time.Since(start)}
			}
			return err
		})
		var refused *failover.StatusError
		if errors.As(err, &refused) {
			return nil, refused.Code, err
		}
		return s, 0, err
	},
}

// dial is what a WebSocket library does: connect to a server URL, which has the scheme ws.
func (w *world) dial(ctx context.Context, url string) (io.ReadWriteCloser, error) {
	rest, ok := strings.CutPrefix(url, "ws://")
	if !ok {
		return nil, fmt.Errorf("dial was given %q, not a ws URL", url)
	}
	resp, err := w.client.RoundTrip(upgradeRequest(ctx, "http://"+rest+join))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, &failover.StatusError{Code: resp.StatusCode, Err: errors.New("bad handshake")}
	}
	return resp.Body.(io.ReadWriteCloser), nil
}

// bothWays runs a test through RoundTrip and through Connect, in a world each.
func bothWays(t *testing.T, test func(w *world, connect connector)) {
	t.Helper()
	for name, connect := range ways {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				test(w, connect)
				w.client.CloseIdleConnections() // which dial uses
			})
		})
	}
}

func TestRTCOutcomes(t *testing.T) {
	tests := []struct {
		name string
		home http.HandlerFunc
		next bool
		took time.Duration
	}{
		{"403", status(403), true, 0},
		{"451", status(451), true, 0},
		{"408", status(408), true, 0},
		{"500", status(500), true, 0},
		{"502", status(502), true, 0},
		{"503 for two minutes", retryAfter(503, "120"), true, 0},
		{"522", status(522), true, 0},
		{"the connection breaks", hangUp, true, 0},
		{"no answer", hang, true, 10 * time.Second},
		{"401", status(401), false, 0},
		{"400", status(400), false, 0},
		{"404", status(404), false, 0},
		{"429", status(429), false, 0},
		{"410", status(410), false, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bothWays(t, func(w *world, connect connector) {
				home, one := w.serve(project, test.home), w.serve(region1, upgraded)
				home.setList(regions("60", region1))
				start := time.Now()
				s, status, err := connect(w, context.Background(), w.transport(), project)
				if took := time.Since(start); took != test.took {
					w.t.Errorf("took %v, want %v", took, test.took)
				}
				if !test.next {
					if s != nil || fmt.Sprint(status) != test.name {
						w.t.Errorf("connected: %t; %d, %v", s != nil, status, err)
					}
					if len(one.asked()) != 0 || len(home.listed()) != 0 {
						w.t.Errorf("%d requests to the region, %d region list requests", len(one.asked()), len(home.listed()))
					}
					return
				}
				if s == nil {
					w.t.Fatalf("not connected: %d, %v", status, err)
				}
				s.echo(w.t, region1)
				s.Close()
				if got := requests(home, one); got[0] != 1 || got[1] != 1 || len(home.listed()) != 1 {
					w.t.Errorf("requests %v, %d region list requests", got, len(home.listed()))
				}
				if list := home.listed()[0].header; list.Get("Authorization") != "Bearer "+token || list.Get("Upgrade") != "" || list.Get("Sec-Websocket-Key") != "" {
					w.t.Errorf("the list was asked for with %v", list)
				}
			})
		})
	}
}

func retryAfter(code int, value string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", value)
		status(code)(w, r)
	}
}

// six is a project whose list has six regions, r1 to r6.
func (w *world) six(answer func(region int) http.HandlerFunc) (sites []*site) {
	home := w.serve(project, answer(0))
	var hosts []string
	sites = append(sites, home)
	for i := 1; i <= 6; i++ {
		host := fmt.Sprintf("r%d.livekit.cloud", i)
		hosts = append(hosts, host)
		sites = append(sites, w.serve(host, answer(i)))
	}
	home.setList(regions("60", hosts...))
	return sites
}

func TestThirdRegionOfSixTakesIt(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		sites := w.six(func(region int) http.HandlerFunc {
			if region == 3 {
				return upgraded
			}
			return after(time.Millisecond, status(403))
		})
		s, status, err := connect(w, context.Background(), w.transport(), project)
		if s == nil {
			w.t.Fatalf("not connected: %d, %v", status, err)
		}
		s.echo(w.t, "r3.livekit.cloud")
		s.Close()
		if got := requests(sites...); !slices.Equal(got, []int{1, 1, 1, 1, 0, 0, 0}) {
			w.t.Errorf("requests %v", got)
		}
		for i := range 3 {
			if !sites[i].asked()[0].at.Before(sites[i+1].asked()[0].at) {
				w.t.Errorf("region %d was asked before region %d", i+1, i)
			}
		}
	})
}

// That a region may not be used is why the others were asked. It stays the error where none of them is to be had.
func TestForbiddenStays(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		w.six(func(i int) http.HandlerFunc {
			if i == 2 {
				return status(403)
			}
			return status(500)
		})
		if s, status, err := connect(w, context.Background(), w.transport(), project); s != nil || status != 403 {
			w.t.Errorf("connected: %t; %d, %v", s != nil, status, err)
		}
	})
}

func TestForbiddenEverywhere(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		sites := w.six(func(int) http.HandlerFunc { return status(403) })
		var seen reports
		var trail failover.Trail
		ctx := failover.WithCall(context.Background(), &failover.Call{Trail: &trail})
		s, status, err := connect(w, ctx, w.transport(failover.OnAttempt(seen.take)), project)
		if s != nil || status != 403 {
			w.t.Errorf("connected: %t; %d, %v", s != nil, status, err)
		}
		if got := requests(sites...); !slices.Equal(got, []int{1, 1, 1, 1, 1, 1, 1}) || len(sites[0].listed()) != 1 {
			w.t.Errorf("requests %v, %d region list requests", got, len(sites[0].listed()))
		}
		if n := len(seen.attempts()); n != 7 {
			w.t.Errorf("OnAttempt saw %d attempts", n)
		}
		if len(trail.Attempts) != 7 || trail.OutcomeUnknown || trail.RequestID != "" {
			w.t.Errorf("the trail is %+v", trail)
		}
		for i, a := range trail.Attempts {
			if a.Status != 403 || a.Number != i+1 || a.Origin != "http://"+sites[i].host {
				w.t.Errorf("attempt %d is %+v", i+1, a)
			}
		}
		var e *failover.Error
		if err != nil && (!errors.As(err, &e) || len(e.Attempts) != 7) { // RoundTrip hands out the last 403 instead
			w.t.Errorf("the error is %v", err)
		}
	})
}

func TestTenAttemptsAtMost(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		home := w.serve(project, status(503))
		var hosts []string
		var sites []*site
		for i := range 20 {
			hosts = append(hosts, fmt.Sprintf("r%d.livekit.cloud", i))
			sites = append(sites, w.serve(hosts[i], status(503)))
		}
		home.setList(regions("60", hosts...))
		if s, status, err := connect(w, context.Background(), w.transport(), project); s != nil || status != 503 {
			w.t.Errorf("connected: %t; %d, %v", s != nil, status, err)
		}
		sites = append([]*site{home}, sites...)
		for i, n := range requests(sites...) {
			if i < 10 && n != 1 || i >= 10 && n != 0 {
				w.t.Errorf("%d requests for region %d: want one for each of the first ten in the order of the list", n, i)
			}
		}
	})
}

// A list that cannot be read surfaces the connection's error, never its own.
func TestConnectionErrorSurfaces(t *testing.T) {
	for name, list := range map[string]http.HandlerFunc{
		"401": status(401), "500": status(500), "HTML": raw("text/html", "<html>"), "never": hang, "drip": drip(200), "404": status(404),
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(w *world, connect connector) {
				home := w.serve(project, status(503))
				home.setList(list)
				start := time.Now()
				s, status, err := connect(w, context.Background(), w.transport(), project)
				if took := time.Since(start); s != nil || status != 503 || took > 2*time.Second {
					w.t.Errorf("connected: %t; %d, %v after %v", s != nil, status, err, took)
				}
				if got := requests(home); got[0] != 1 || len(home.listed()) != 1 {
					w.t.Errorf("%d requests, %d region list requests", got[0], len(home.listed()))
				}
			})
		})
	}
}

// Regions that failed stay excluded when another list comes meanwhile.
func TestFailedRegionsStayExcluded(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		var rt *failover.Transport
		home, two := w.serve(project, status(503)), w.serve(region2, upgraded)
		one := w.serve(region1, func(rw http.ResponseWriter, r *http.Request) {
			rt.ReportRegions("ws://"+project, []failover.Region{{URL: "ws://" + region1}, {URL: "ws://" + project}, {URL: "ws://" + region2}})
			status(503)(rw, r)
		})
		home.setList(regions("60", region1))
		rt = w.transport()
		s, status, err := connect(w, context.Background(), rt, project)
		if s == nil {
			w.t.Fatalf("not connected: %d, %v", status, err)
		}
		s.Close()
		if got := requests(home, one, two); !slices.Equal(got, []int{1, 1, 1}) {
			w.t.Errorf("requests %v, want each once", got)
		}
	})
}

// Hosts without regions, and calls without failover, get one attempt.
func TestOneAttemptConnections(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		for _, host := range []string{cloud, own} {
			s := w.serve(host, status(503))
			s.setList(regions("60", region1))
			if _, status, err := connect(w, context.Background(), w.transport(), host); status != 503 || len(s.asked()) != 1 || len(s.listed()) != 0 {
				w.t.Errorf("%s: %d, %v; %d requests, %d lists", host, status, err, len(s.asked()), len(s.listed()))
			}
		}
		home := w.serve(project, status(503))
		home.setList(regions("60", region1))
		off := failover.WithCall(context.Background(), &failover.Call{Off: true})
		if _, status, err := connect(w, off, w.transport(), project); status != 503 || len(home.asked()) != 1 || len(home.listed()) != 0 {
			w.t.Errorf("off: %d, %v; %d requests, %d lists", status, err, len(home.asked()), len(home.listed()))
		}
	})
}

func TestCancelEndsAConnection(t *testing.T) {
	for name, set := range map[string]func(w *world){
		"hanging": func(w *world) {
			w.six(func(int) http.HandlerFunc { return hang })
		},
		"refusing slowly": func(w *world) {
			w.six(func(int) http.HandlerFunc { return after(900*time.Millisecond, status(503)) })
		},
		"a hanging list": func(w *world) {
			w.serve(project, status(503)).setList(hang)
		},
		"a black hole": func(w *world) { w.net.BlackHole(project+":80", true) },
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(w *world, connect connector) {
				set(w)
				rt := w.transport()
				for moment := time.Duration(0); moment < 25*time.Second; moment += 1111 * time.Millisecond {
					ctx, cancel := context.WithCancel(context.Background())
					time.AfterFunc(moment, cancel)
					start := time.Now()
					s, status, err := connect(w, ctx, rt, project)
					cancel()
					if took := time.Since(start); s != nil || took > moment || status == 0 && took == moment && !errors.Is(err, context.Canceled) {
						w.t.Errorf("cancelled after %v: connected %t; %d, %v after %v", moment, s != nil, status, err, took)
					}
					pass(3 * time.Second)
					w.idle()
				}
			})
		})
	}
}

// Two joins of one identity would evict each other: no two attempts of a connection overlap in time.
func TestAttemptsDoNotOverlap(t *testing.T) {
	inWorld(t, func(w *world) {
		w.six(func(region int) http.HandlerFunc {
			if region%2 == 0 {
				return hang
			}
			return after(4*time.Second, status(503))
		})
		var running, most, dials atomic.Int64
		enter := func() { most.Store(max(most.Load(), running.Add(1))); dials.Add(1) }
		rt := w.transport(failover.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path != join {
					return next.RoundTrip(req)
				}
				enter()
				defer running.Add(-1)
				return next.RoundTrip(req)
			})
		}))
		ways["RoundTrip"](w, context.Background(), rt, project)
		rt.Connect(context.Background(), "ws://"+project, token, func(ctx context.Context, url string) error {
			enter()
			defer running.Add(-1)
			_, err := w.dial(ctx, url)
			return err
		})
		if most.Load() != 1 || dials.Load() != 14 {
			t.Errorf("%d attempts at one time, %d in all, want 1 and 14", most.Load(), dials.Load())
		}
		w.client.CloseIdleConnections()
	})
}

// A connection outlives the context of the call that made it, and the limit of its attempt. Closing it frees everything.
func TestConnectionOutlivesItsCall(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		w.serve(project, upgraded)
		ctx, cancel := context.WithCancel(context.Background())
		s, status, err := connect(w, ctx, w.transport(), project)
		if s == nil {
			w.t.Fatalf("%d, %v", status, err)
		}
		s.echo(w.t, project)
		cancel()
		pass(time.Minute)
		s.echo(w.t, project)
		synctest.Wait()
		if n := w.net.Open(); n != 1 {
			w.t.Errorf("%d connections are open", n)
		}
		s.Close()
		synctest.Wait()
		w.idle()
		if n := w.net.Open(); n != 0 {
			w.t.Errorf("%d connections are left", n)
		}
	})
}
