package sockets

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// front stands before the regions of a server and records what is asked of them. The region list that passes through it names
// the front in their place.
type front struct {
	url   string         // of the first region, for WebSockets
	token map[int]string // in place of the client's, for connections to a region

	mu      sync.Mutex
	asked   []int       // the region of each connection, in order
	lists   int         // requests for the region list
	running map[int]int // connections by region
}

func newFront(t testing.TB, upstream []string, tokens map[int]string) *front {
	t.Helper()
	f := &front{token: tokens, running: map[int]int{}}
	var names []string
	for i, raw := range upstream {
		target, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				if token := f.token[i]; token != "" && isJoin(r.In) {
					r.Out.Header.Set("Authorization", "Bearer "+token)
				}
			},
			ModifyResponse: func(resp *http.Response) error { return f.rename(resp, names) },
		}
		server := httptest.NewServer(f.record(i, proxy))
		t.Cleanup(server.Close)
		names = append(names, raw+`"`, server.URL+`"`)
		if i == 0 {
			f.url = "ws" + strings.TrimPrefix(server.URL, "http")
		}
	}
	return f
}

func isJoin(r *http.Request) bool { return r.URL.Path == "/rtc" }

func (f *front) record(region int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isJoin(r) {
			f.change(func() { f.lists++ })
			next.ServeHTTP(w, r)
			return
		}
		f.change(func() { f.asked, f.running[region] = append(f.asked, region), f.running[region]+1 })
		defer f.change(func() { f.running[region]-- })
		next.ServeHTTP(w, r)
	})
}

func (f *front) change(c func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c()
}

// rename puts the front's URLs into a region list.
func (f *front) rename(resp *http.Response, names []string) error {
	if isJoin(resp.Request) {
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	resp.Body.Close()
	body = []byte(strings.NewReplacer(names...).Replace(string(body)))
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// check wants the regions to have been asked in this order, and the region list to have been read so often.
func (f *front) check(t *testing.T, asked []int, lists int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.asked, asked) || f.lists != lists {
		t.Errorf("regions %v were asked, and the list %d times; want %v and %d", f.asked, f.lists, asked, lists)
	}
}

// settles waits until the regions have these connections and no others.
func (f *front) settles(t *testing.T, want map[int]int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		var open map[int]int
		f.change(func() {
			open = map[int]int{}
			for region, n := range f.running {
				if n > 0 {
					open[region] = n
				}
			}
		})
		switch {
		case maps.Equal(open, want):
			return
		case time.Now().After(deadline):
			t.Fatalf("connections by region: %v, want %v", open, want)
		}
	}
}
