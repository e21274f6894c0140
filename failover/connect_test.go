package failover_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// What Connect alone has: the dial function, its URLs and its context; lists that are prepared or reported.

// dialled connects with a dial function that fails with each error in turn, the last for ever, and returns the URLs it was given.
func dialled(ctx context.Context, rt *failover.Transport, url string, errs ...error) (urls []string, err error) {
	err = rt.Connect(ctx, url, token, func(_ context.Context, url string) error {
		urls = append(urls, url)
		return errs[min(len(urls), len(errs))-1]
	})
	return urls, err
}

var errDown = &failover.StatusError{Code: 503}

// dial gets URLs in the scheme of the given URL, with its path.
func TestConnectURLs(t *testing.T) {
	tests := []struct{ given, list, first, second string }{
		{"ws://" + project, "http://" + region1, "ws://" + project, "ws://" + region1},
		{"wss://" + project, "https://" + region1, "wss://" + project, "wss://" + region1},
		{"wss://" + project + "/base/path", "wss://" + region1, "wss://" + project + "/base/path", "wss://" + region1 + "/base/path"},
		{"http://" + project + "/", "ws://" + region1, "http://" + project + "/", "http://" + region1 + "/"},
		{"https://" + project, "https://" + region1 + ":8443", "https://" + project, "https://" + region1 + ":8443"},
		{"ws://" + project, "https://" + region1, "ws://" + project, "wss://" + region1},
		{" WSS://" + project + " ", "https://" + region1, "wss://" + project, "wss://" + region1},
	}
	for _, test := range tests {
		inWorld(t, func(w *world) {
			rt := w.transport()
			if err := rt.ReportRegions(test.given, []failover.Region{{URL: test.list}}); err != nil {
				t.Fatal(err)
			}
			urls, err := dialled(context.Background(), rt, test.given, errDown)
			if want := []string{test.first, test.second}; !slices.Equal(urls, want) || err == nil {
				t.Errorf("%s: dial was given %q, want %q: %v", test.given, urls, want, err)
			}
		})
	}
}

// statusCoder is an error of some WebSocket library.
type statusCoder struct{ code int }

func (s statusCoder) Error() string   { return fmt.Sprintf("bad handshake: %d", s.code) }
func (s statusCoder) StatusCode() int { return s.code }

// Only the status decides, never a message's text, and dial's own error can be found.
func TestConnectErrors(t *testing.T) {
	plain := errors.New("401 Unauthorized: 404 not found")
	for _, test := range []struct {
		err   error
		dials int
	}{
		{statusCoder{403}, 2}, {fmt.Errorf("dialling: %w", statusCoder{503}), 2}, {plain, 2}, {&failover.StatusError{Code: 451, Err: plain}, 2},
		{statusCoder{401}, 1}, {fmt.Errorf("try again: %w", statusCoder{404}), 1}, {&failover.StatusError{Code: 429, Err: plain}, 1},
		{context.Canceled, 2}, // a library's, not the caller's
	} {
		inWorld(t, func(w *world) {
			rt := w.transport()
			rt.ReportRegions("ws://"+project, []failover.Region{{URL: "ws://" + region1}})
			urls, err := dialled(context.Background(), rt, "ws://"+project, test.err)
			var e *failover.Error
			if len(urls) != test.dials || !errors.As(err, &e) || len(e.Attempts) != test.dials || !errors.Is(err, test.err) {
				t.Errorf("%v: %d dials, want %d: %v", test.err, len(urls), test.dials, err)
			}
		})
	}
}

// The error is that of the last connection; a server that refuses in the end after others broke is what the caller hears of.
func TestLastConnectionErrorStands(t *testing.T) {
	inWorld(t, func(w *world) {
		rt := w.transport()
		rt.ReportRegions("ws://"+project, []failover.Region{{URL: "ws://" + region1}, {URL: "ws://" + region2}})
		last := errors.New("the last of them")
		_, err := dialled(context.Background(), rt, "ws://"+project, errDown, errors.New("broken"), last)
		var e *failover.Error
		if !errors.Is(err, last) || errors.Is(err, errDown) || !errors.As(err, &e) || len(e.Attempts) != 3 || e.Attempts[0].Status != 503 {
			t.Errorf("got %v", err)
		}
	})
}

// The context of an attempt ends at its limit, or with the caller's, and never once dial has returned nil.
func TestConnectContext(t *testing.T) {
	inWorld(t, func(w *world) {
		rt := w.transport()
		rt.ReportRegions("ws://"+project, []failover.Region{{URL: "ws://" + region1}})
		type key struct{}
		parent, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
		var kept context.Context
		start := time.Now()
		err := rt.Connect(parent, "ws://"+project, token, func(ctx context.Context, url string) error {
			if ctx.Value(key{}) != "value" {
				t.Error("the context has lost the caller's values")
			}
			if kept == nil {
				kept = ctx
				<-ctx.Done()
				return ctx.Err()
			}
			kept = ctx
			pass(8 * time.Second)
			return nil
		})
		if took := time.Since(start); err != nil || took != 18*time.Second {
			t.Errorf("%v after %v, want 10 s of the first attempt and 8 s of the second", err, took)
		}
		cancel()
		pass(time.Minute)
		if kept.Err() != nil {
			t.Errorf("the connection's context ended: %v", kept.Err())
		}
	})
}

// A dial that succeeds in the moment in which the caller cancels has made a connection, which is not lost, and its context is
// not ended afterwards.
func TestConnectedAtTheCancel(t *testing.T) {
	inWorld(t, func(w *world) {
		rt := w.transport()
		for range 200 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			var kept context.Context
			err := rt.Connect(ctx, "ws://"+project, token, func(ctx context.Context, _ string) error {
				kept = ctx
				pass(time.Second)
				return nil
			})
			before := kept.Err() // the cancel may have come first
			cancel()
			if err != nil {
				t.Errorf("a connection was made and lost: %v", err)
			}
			synctest.Wait()
			if before == nil && kept.Err() != nil {
				t.Error("the connection's context ended after Connect had returned nil")
			}
		}
	})
}

func TestConnectDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		rt := w.transport()
		rt.ReportRegions("ws://"+project, []failover.Region{{URL: "ws://" + region1}, {URL: "ws://" + region2}})
		start, dials := time.Now(), 0
		err := rt.Connect(within(w, 14*time.Second), "ws://"+project, token, func(ctx context.Context, _ string) error {
			dials++
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 14*time.Second || dials != 2 {
			t.Errorf("%v after %v and %d dials", err, took, dials)
		}
		done, cancel := context.WithCancel(context.Background())
		cancel()
		if urls, err := dialled(done, rt, "ws://"+project, nil); !errors.Is(err, context.Canceled) || len(urls) > 0 {
			t.Errorf("with a cancelled context: %d dials, %v", len(urls), err)
		}
	})
}

// An attempt's limit ends the context of dial. That is no cancel of the caller's.
func TestLimitIsNoCancel(t *testing.T) {
	inWorld(t, func(w *world) {
		own := errors.New("of the library's own")
		for _, with := range []error{nil, own} {
			err := w.transport().Connect(context.Background(), "ws://"+project, token, func(ctx context.Context, _ string) error {
				<-ctx.Done()
				return cmp.Or(with, ctx.Err())
			})
			if err == nil || errors.Is(err, context.Canceled) || with != nil && !errors.Is(err, with) {
				t.Errorf("dial returned %v, Connect %v", with, err)
			}
		}
	})
}

// A dial function that panics or ends its goroutine takes Connect with it, and leaves nothing that hangs.
func TestDialThatDoesNotReturn(t *testing.T) {
	inWorld(t, func(w *world) {
		rt := w.transport()
		var ended context.Context
		for name, end := range map[string]func(){"panic": func() { panic("in dial") }, "Goexit": runtime.Goexit} {
			got := make(chan any, 1)
			go func() {
				defer func() { got <- recover() }()
				rt.Connect(context.Background(), "ws://"+project, token, func(ctx context.Context, _ string) error {
					ended = ctx
					end()
					return nil
				})
			}()
			if v := <-got; name == "panic" && v != "in dial" || name == "Goexit" && v != nil {
				t.Errorf("%s: recovered %v", name, v)
			}
			synctest.Wait()
			if ended.Err() == nil {
				t.Errorf("%s: the attempt's context goes on", name)
			}
			w.idle()
		}
		if urls, err := dialled(context.Background(), rt, "ws://"+project, nil); err != nil || len(urls) != 1 {
			t.Errorf("a later Connect: %d dials, %v", len(urls), err)
		}
	})
}

func TestPrepare(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, ok)
		var hosts []string
		for i := 1; i <= 12; i++ {
			hosts = append(hosts, fmt.Sprintf("r%d.livekit.cloud", i))
		}
		home.setList(regions("60", hosts...))
		rt := w.transport()
		if err := rt.Prepare(context.Background(), "ws://"+project, token); err != nil {
			t.Fatal(err)
		}
		if list := home.listed(); len(list) != 1 || list[0].header.Get("Authorization") != "Bearer "+token {
			t.Fatalf("%d region list requests", len(list))
		}
		urls, _ := dialled(context.Background(), rt, "ws://"+project, errDown)
		want := []string{"ws://r1.livekit.cloud", "ws://" + project}
		for i := 2; i <= 9; i++ {
			want = append(want, fmt.Sprintf("ws://r%d.livekit.cloud", i))
		}
		if !slices.Equal(urls, want) {
			t.Errorf("dialled %q,\nwant %q", urls, want)
		}
		// Only the next connection begins there.
		if urls, _ := dialled(context.Background(), rt, "ws://"+project, nil); urls[0] != "ws://"+project {
			t.Errorf("the connection after it began at %s", urls[0])
		}
		if n := len(home.listed()); n != 1 {
			t.Errorf("%d region list requests, want 1", n)
		}
	})
}

func TestPrepareThatCannot(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, ok)
		rt := w.transport()
		for _, host := range []string{cloud, own} { // hosts without regions: nothing to prepare
			if err := rt.Prepare(context.Background(), "wss://"+host, token); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		}
		home.setList(status(401))
		if err := rt.Prepare(context.Background(), "ws://"+project, token); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("a list that answers 401: %v", err)
		}
		if err := rt.Prepare(context.Background(), "ws://"+project, token); err == nil {
			t.Error("a moment after a failed read there is no list either")
		}
		if urls, err := dialled(context.Background(), rt, "ws://"+project, nil); err != nil || !slices.Equal(urls, []string{"ws://" + project}) {
			t.Errorf("dialled %q, %v", urls, err)
		}
		pass(2 * time.Second)
		home.setList(hang)
		start := time.Now()
		if err := rt.Prepare(within(w, time.Second), "ws://"+project, token); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("with a second: %v after %v", err, time.Since(start))
		}
		pass(2 * time.Second)
		home.setList(status(404)) // no regions: no error
		if err := rt.Prepare(context.Background(), "ws://"+project, token); err != nil {
			t.Error(err)
		}
		if urls, err := dialled(context.Background(), rt, "ws://"+project, nil); err != nil || urls[0] != "ws://"+project {
			t.Errorf("dialled %q, %v", urls, err)
		}
	})
}

// A reported list is used like one that was read, and trusted no further.
func TestReportRegions(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, status(503))
		w.serve(region2, ok)
		rt := w.transport()
		err := rt.ReportRegions("ws://"+project, []failover.Region{
			{URL: "ws://evil.example.com"}, {URL: "not a URL"}, {URL: ""}, {URL: "ws://u:p@" + region1}, {Name: "two", URL: "ws://" + region2, Distance: 7},
		})
		if err != nil {
			t.Fatal(err)
		}
		urls, _ := dialled(context.Background(), rt, "ws://"+project, errDown)
		if want := []string{"ws://" + project, "ws://" + region2}; !slices.Equal(urls, want) {
			t.Errorf("dialled %q, want %q", urls, want)
		}
		if r := w.post(context.Background(), rt, project, failover.Call{}); r.status != 200 || r.body != "from "+region2 {
			t.Errorf("an API call does not use it: %d, %v", r.status, r.err)
		}
		if n := len(home.listed()); n != 0 {
			t.Errorf("%d region list requests", n)
		}
		if err := rt.ReportRegions("ws://"+own, []failover.Region{{URL: "ws://" + own}}); err != nil {
			t.Errorf("for a host without regions: %v", err)
		}
	})
}

// A reported list stands against a read that began before it, and an empty one against the list that there was.
func TestReportRegionsReplaces(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, ok)
		home.setList(after(time.Second, regions("60", region1)))
		rt := w.transport()
		begins := func(want ...string) {
			t.Helper()
			if urls, _ := dialled(context.Background(), rt, "ws://"+project, errDown); !slices.Equal(urls, want) {
				t.Errorf("dialled %q, want %q", urls, want)
			}
		}
		prepared := make(chan error)
		go func() { prepared <- rt.Prepare(context.Background(), "ws://"+project, token) }()
		synctest.Wait()
		if err := rt.ReportRegions("ws://"+project, []failover.Region{{URL: "ws://" + region2}}); err != nil {
			t.Error(err)
		}
		if err := <-prepared; err != nil {
			t.Error(err)
		}
		begins("ws://"+region2, "ws://"+project)
		if err := rt.ReportRegions("ws://"+project, nil); err != nil {
			t.Error(err)
		}
		begins("ws://" + project)
		if n := len(home.listed()); n != 1 {
			t.Errorf("%d region list requests, want 1", n)
		}
	})
}

// Where a list is of no use, none is asked for and a reported one sends nothing elsewhere.
func TestListsOfNoUse(t *testing.T) {
	for name, c := range map[string]struct {
		host string
		opts []failover.Option
		want []string
	}{
		"an API host":           {cloud, nil, []string{cloud}},
		"a foreign host":        {own, nil, []string{own}},
		"regions by Origins":    {own, []failover.Option{failover.Origins("http://"+own, "http://"+region1), failover.Hosts(region2)}, []string{own, region1}},
		"failover switched off": {project, []failover.Option{failover.Off()}, []string{project}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				home := w.serve(c.host, ok)
				home.setList(regions("60", region2))
				rt := w.transport(c.opts...)
				if err := rt.ReportRegions("ws://"+c.host, []failover.Region{{URL: "ws://" + region2}}); err != nil {
					t.Error(err)
				}
				if err := rt.Prepare(context.Background(), "ws://"+c.host, token); err != nil {
					t.Error(err)
				}
				urls, _ := dialled(context.Background(), rt, "ws://"+c.host, errDown)
				for i, url := range urls {
					urls[i] = strings.TrimPrefix(url, "ws://")
				}
				if !slices.Equal(urls, c.want) {
					t.Errorf("dialled %q, want %q", urls, c.want)
				}
				if n := len(home.listed()); n != 0 {
					t.Errorf("%d region list requests", n)
				}
			})
		})
	}
}

func TestConnectRefusesNonsense(t *testing.T) {
	rt := must(failover.New(nil))
	never := func(context.Context, string) error { t.Error("dialled"); return nil }
	ctx := context.Background()
	for _, url := range []string{"", "proj", "ftp://" + project, "ws://", "ws://" + project + "?access_token=" + token, "ws://u:p@" + project, "ws://%zz"} {
		for name, err := range map[string]error{
			"Connect": rt.Connect(ctx, url, token, never), "Prepare": rt.Prepare(ctx, url, token), "ReportRegions": rt.ReportRegions(url, nil),
		} {
			if err == nil || !strings.Contains(err.Error(), "wss://my-project.livekit.cloud") || strings.Contains(err.Error(), token) {
				t.Errorf("%s(%q): %v", name, url, err)
			}
		}
	}
	if err := rt.Connect(ctx, "wss://"+project, token, nil); err == nil {
		t.Error("a nil dial function was taken")
	}
	rt.Close()
	if err := rt.Connect(ctx, "wss://"+project, token, never); err == nil {
		t.Error("a closed Transport connects")
	}
}

// Paths that are neither Twirp nor RTC pass through once, untouched and unread.
func TestOtherPathsPassThrough(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve(project, status(503))
		rt := w.transport()
		req := must(http.NewRequest(http.MethodGet, "http://"+project+"/healthz", nil))
		resp, err := rt.RoundTrip(req)
		if err != nil || resp.StatusCode != 503 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		if asked := s.asked(); len(asked) != 1 || len(s.listed()) != 0 || asked[0].id != "" {
			t.Errorf("%d requests, %d lists, id %q", len(asked), len(s.listed()), asked[0].id)
		}
	})
}
