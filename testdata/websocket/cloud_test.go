package sockets

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

// inCloud runs a test for each way to join in a Cloud of six regions, whose clock moves by itself. When it is over, no
// connection and no goroutine is left.
func inCloud(t *testing.T, test func(t *testing.T, c *cloudtest.Cloud, way way, join func(context.Context) (*signal, error))) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := cloudtest.Start(cloudtest.InMemory(), cloudtest.Regions("zero", "one", "two", "three", "four", "five"))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				tr := c.Transport()
				n := network{client: &http.Client{Transport: tr}}
				n.dialer.NetDialContext, n.dialer.TLSClientConfig = c.DialContext, c.TLSConfig()
				rt := newTransport(t, c.Transport())
				test(t, c, way, func(ctx context.Context) (*signal, error) {
					return way.join(ctx, rt, n, "wss://demo.livekit.cloud", mint(t, c.Key, c.Secret, ""))
				})
				rt.Close()
				tr.CloseIdleConnections()
				synctest.Wait()
				for _, h := range c.Regions() {
					if n := h.Connections(); n != 0 {
						t.Errorf("%d connections to %s are left", n, h)
					}
				}
			})
		})
	}
}

// listAll makes the list name every region, allowed or not.
func listAll(c *cloudtest.Cloud) {
	var all []failover.Region
	for _, h := range c.Regions() {
		all = append(all, failover.Region{Name: h.RegionName(), URL: h.URL()})
	}
	c.ListRegions(all...)
}

// asked returns the regions of the connections that arrived, in order, and how often the region list was read.
func asked(c *cloudtest.Cloud) (regions []string, lists int) {
	for _, q := range c.Requests() {
		if q.Path == "/rtc" {
			regions = append(regions, q.Region)
		} else {
			lists++
		}
	}
	return regions, lists
}

func wantAsked(t *testing.T, c *cloudtest.Cloud, want ...string) {
	t.Helper()
	if got, lists := asked(c); !slices.Equal(got, want) || lists != 1 {
		t.Errorf("asked were %q, and the list %d times; want %q and once", got, lists, want)
	}
}

// A project that is pinned to one region is joined there: each region before it once and in order, or at once where the list
// names only what is allowed. The connection outlives the call, and its closing frees everything.
func TestPinnedJoin(t *testing.T) {
	for name, test := range map[string]struct {
		list func(*cloudtest.Cloud)
		want []string
	}{
		"all listed":     {listAll, []string{"zero", "one", "two", "three"}},
		"allowed listed": {func(*cloudtest.Cloud) {}, []string{"zero", "three"}},
	} {
		t.Run(name, func(t *testing.T) {
			inCloud(t, func(t *testing.T, c *cloudtest.Cloud, _ way, join func(context.Context) (*signal, error)) {
				c.Pin(c.Region(3))
				test.list(c)
				ctx, cancel := context.WithCancel(context.Background())
				conn, err := join(ctx)
				if err != nil {
					t.Fatal(err)
				}
				cancel()
				<-time.After(time.Minute)
				conn.lives(t)
				wantAsked(t, c, test.want...)
				if got := conn.joined(t); got.GetServerRegion() != "three" || got.GetRoom().GetName() != roomName {
					t.Errorf("joined %v", got)
				}
				if n := c.Region(3).Connections(); n != 1 {
					t.Errorf("%d connections to the region", n)
				}
				conn.close()
			})
		})
	}
}

func TestForbiddenEverywhere(t *testing.T) {
	inCloud(t, func(t *testing.T, c *cloudtest.Cloud, way way, join func(context.Context) (*signal, error)) {
		c.Pin()
		listAll(c)
		_, err := join(context.Background())
		var refused *failover.StatusError
		if err == nil || way.reads && (!errors.As(err, &refused) || refused.Code != 403) {
			t.Errorf("got %v", err)
		}
		wantAsked(t, c, "zero", "one", "two", "three", "four", "five")
	})
}

// A region that takes the request and says nothing costs 10 s, a cancel ends it at once, with every library.
func TestSilentRegion(t *testing.T) {
	inCloud(t, func(t *testing.T, c *cloudtest.Cloud, _ way, join func(context.Context) (*signal, error)) {
		c.Region(0).Break(cloudtest.Hang(), cloudtest.On(cloudtest.RTC))
		start := time.Now()
		conn, err := join(context.Background())
		if took := time.Since(start); err != nil || took != 10*time.Second {
			t.Fatalf("%v after %v, want a connection after 10 s", err, took)
		}
		wantAsked(t, c, "zero", "one")
		conn.close()

		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(3*time.Second, cancel)
		start = time.Now()
		if _, err := join(ctx); !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v, want the cancel after 3 s", err, time.Since(start))
		}
	})
}
