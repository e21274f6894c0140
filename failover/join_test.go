package failover_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// A join is more than a WebSocket: the server's first message decides, which only the dial function of Connect can read.

// greeting takes a connection like upgraded, and says hello first.
func greeting(w http.ResponseWriter, r *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello\n")
	io.Copy(io.Discard, conn)
}

// upgradedThenClosed closes before the join.
func upgradedThenClosed(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	conn.Close()
}

// A connection that closes before the first message, or never brings one, leads to the next region. What the failed attempts
// opened is closed by the end of their contexts; what the last one opened is not.
func TestFirstMessage(t *testing.T) {
	for name, test := range map[string]struct {
		home http.HandlerFunc
		took time.Duration
	}{
		"closed before the join": {upgradedThenClosed, 0},
		"no first message":       {upgraded, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				home, one := w.serve(project, test.home), w.serve(region1, greeting)
				home.setList(regions("60", region1))
				var conn io.Closer
				start := time.Now()
				err := w.transport().Connect(context.Background(), "ws://"+project, token, func(ctx context.Context, url string) error {
					c, err := w.dial(ctx, url)
					if err != nil {
						return err
					}
					context.AfterFunc(ctx, func() { c.Close() })
					line, err := bufio.NewReader(c).ReadString('\n')
					if err == nil && line != "hello\n" {
						t.Errorf("the first message is %q", line)
					}
					conn = c
					return err
				})
				if took := time.Since(start); err != nil || took != test.took {
					t.Fatalf("%v after %v, want none after %v", err, took, test.took)
				}
				pass(time.Minute)
				synctest.Wait()
				if got := requests(home, one); !slices.Equal(got, []int{1, 1}) || w.net.Open() != 1 {
					t.Errorf("requests %v; %d connections are open, want the last", got, w.net.Open())
				}
				conn.Close()
				w.client.CloseIdleConnections()
			})
		})
	}
}

// What is no HTTP status of a refusal is none: the next region is tried. A success that makes no connection ends it.
func TestStatusesThatRefuseNothing(t *testing.T) {
	for code, test := range map[int]struct {
		dials  int
		reason string
	}{
		0:    {2, "the connection broke"},
		-1:   {2, "the connection broke"},
		101:  {2, "the connection broke"},
		1011: {2, "the connection broke"},
		4001: {2, "the connection broke"},
		200:  {1, "an answer without a connection"},
		204:  {1, "an answer without a connection"},
		301:  {1, "301 Moved Permanently"},
		426:  {1, "426 Upgrade Required"},
	} {
		inWorld(t, func(w *world) {
			rt := w.transport()
			rt.ReportRegions("ws://"+project, []failover.Region{{URL: "ws://" + region1}})
			urls, err := dialled(context.Background(), rt, "ws://"+project, statusCoder{code})
			var e *failover.Error
			if !errors.As(err, &e) || !errors.Is(err, statusCoder{code}) || len(urls) != test.dials || len(e.Attempts) != test.dials {
				t.Fatalf("%d: %d dials, want %d: %v", code, len(urls), test.dials, err)
			}
			if last := e.Attempts[test.dials-1]; !strings.HasPrefix(last.Reason, test.reason) || last.Status != 0 && last.Status != code {
				t.Errorf("%d: the attempt is %+v, want reason %q", code, last, test.reason)
			}
		})
	}
}

// DialUntil makes a library that never looks at its context end with the attempt and with the caller.
func TestDialUntil(t *testing.T) {
	inWorld(t, func(w *world) {
		home, one := w.serve(project, hang), w.serve(region1, greeting)
		home.setList(regions("60", region1))
		rt := w.transport()
		blind := func(ctx context.Context, url string) (io.Closer, error) { // a library that looks at its context as gorilla does
			host := strings.TrimPrefix(url, "ws://")
			conn, err := failover.DialUntil(ctx, w.net.DialContext)(ctx, "tcp", host+":80")
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", join, host)
			r := bufio.NewReader(conn)
			for line := ""; line != "hello\n"; {
				if line, err = r.ReadString('\n'); err != nil {
					return nil, err
				}
			}
			return conn, nil
		}
		var conn io.Closer
		dial := func(ctx context.Context, url string) (err error) {
			conn, err = blind(ctx, url)
			return err
		}

		start := time.Now()
		if err := rt.Connect(context.Background(), "ws://"+project, token, dial); err != nil || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v, want a connection after the 10 s of the first attempt", err, time.Since(start))
		}
		pass(time.Minute)
		synctest.Wait()
		if got := requests(home, one); !slices.Equal(got, []int{1, 1}) || w.net.Open() != 1 {
			t.Errorf("requests %v; %d connections are open, want the last", got, w.net.Open())
		}
		conn.Close()

		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(3*time.Second, cancel)
		start = time.Now()
		if err := rt.Connect(ctx, "ws://"+project, token, dial); !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v, want the cancel after 3 s", err, time.Since(start))
		}
		synctest.Wait()
		if n := w.net.Open(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// A net.Dialer stands in for a dial function that is not given, and a failed dial is told as it is.
func TestDialUntilDials(t *testing.T) {
	broken := errors.New("no route")
	failing := failover.DialUntil(context.Background(), func(context.Context, string, string) (net.Conn, error) { return nil, broken })
	if conn, err := failing(context.Background(), "tcp", "host:80"); conn != nil || err != broken {
		t.Errorf("got %v, %v", conn, err)
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if conn, err := failover.DialUntil(context.Background(), nil)(done, "tcp", "127.0.0.1:1"); conn != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %v, %v", conn, err)
	}
}

// A connection without failover goes to the URL that was given, whatever was prepared.
func TestPreparedButOff(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(project, ok)
		home.setList(regions("60", region1))
		rt := w.transport()
		if err := rt.Prepare(context.Background(), "ws://"+project, token); err != nil {
			t.Fatal(err)
		}
		off := failover.WithCall(context.Background(), &failover.Call{Off: true})
		if urls, _ := dialled(off, rt, "ws://"+project, errDown); !slices.Equal(urls, []string{"ws://" + project}) {
			t.Errorf("without failover: dialled %q", urls)
		}
		if urls, _ := dialled(context.Background(), rt, "ws://"+project, errDown); !slices.Equal(urls, []string{"ws://" + region1, "ws://" + project}) {
			t.Errorf("with it: dialled %q", urls)
		}
	})
}
