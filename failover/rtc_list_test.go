package failover_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// Where a connection's regions come from. What is the same for both ways is tested through both.

// A list that is read again during a connection brings regions that are new, and none that failed.
func TestListReadAgainMidway(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		home := w.serve(project, status(503))
		sites := []*site{home}
		var hosts []string
		for i := 1; i <= 7; i++ {
			hosts = append(hosts, fmt.Sprintf("r%d.livekit.cloud", i))
			sites = append(sites, w.serve(hosts[i-1], hang))
		}
		taken := w.serve(region1, upgraded)
		later := append([]string{project}, append(slices.Clone(hosts), region1)...)
		home.setList(first(regions("0", hosts...), regions("0", later...)))
		start := time.Now()
		s, status, err := connect(w, context.Background(), w.transport(), project)
		if s == nil {
			w.t.Fatalf("not connected: %d, %v", status, err)
		}
		if took := time.Since(start); took != 70*time.Second {
			w.t.Errorf("took %v, want 10 s for each region that hangs", took)
		}
		s.echo(w.t, region1)
		s.Close()
		for i, n := range requests(append(sites, taken)...) {
			if n != 1 {
				w.t.Errorf("%d requests for region %d, want 1", n, i)
			}
		}
		if n := len(home.listed()); n != 2 {
			w.t.Errorf("the list was read %d times, want 2", n)
		}
	})
}

// The region that Prepare found is the first choice of the next connection, and the given URL the second. The one after that
// begins at the given URL again.
func TestPreparedConnection(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		var order []string
		note := func(then http.HandlerFunc) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) {
				order = append(order, r.Host)
				then(rw, r)
			}
		}
		home := w.serve(project, note(upgraded))
		w.serve(region1, note(status(403)))
		w.serve(region2, note(upgraded))
		home.setList(regions("60", region1, region2))
		rt := w.transport()
		if err := rt.Prepare(context.Background(), "ws://"+project, token); err != nil {
			w.t.Fatal(err)
		}
		for range 2 {
			s, status, err := connect(w, context.Background(), rt, project)
			if s == nil {
				w.t.Fatalf("not connected: %d, %v", status, err)
			}
			s.echo(w.t, project)
			s.Close()
		}
		if want := []string{region1, project, project}; !slices.Equal(order, want) || len(home.listed()) != 1 {
			w.t.Errorf("asked were %v, want %v; the list was read %d times", order, want, len(home.listed()))
		}
	})
}

// A region that the server pushed takes the connection, and no list is asked for.
func TestReportedRegionTakesIt(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		home := w.serve(project, status(503))
		one, two := w.serve(region1, status(451)), w.serve(region2, upgraded)
		home.setList(regions("60", region3))
		rt := w.transport()
		if err := rt.ReportRegions("ws://"+project, []failover.Region{{URL: "ws://" + region1}, {URL: "ws://" + region2}}); err != nil {
			w.t.Fatal(err)
		}
		s, status, err := connect(w, context.Background(), rt, project)
		if s == nil {
			w.t.Fatalf("not connected: %d, %v", status, err)
		}
		s.echo(w.t, region2)
		s.Close()
		if got := requests(home, one, two); !slices.Equal(got, []int{1, 1, 1}) || len(home.listed()) != 0 {
			w.t.Errorf("requests %v, %d region list requests", got, len(home.listed()))
		}
	})
}
