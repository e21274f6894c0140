package failover_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// A region list may be anything. The token goes only where it may, the call is decided within its time, and a bad entry does
// not lose the good ones.

// raw answers with a body as it is.
func raw(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Write([]byte(body))
	}
}

// listOf is a region list with these URLs, and those of entries that are not even JSON strings.
func listOf(urls ...string) http.HandlerFunc {
	var entries []string
	for _, u := range urls {
		if !strings.HasPrefix(u, "{") && !strings.HasPrefix(u, "[") && u != "null" && u != "7" {
			u = fmt.Sprintf(`{"region":"x","url":%q,"distance":"12"}`, u)
		}
		entries = append(entries, u)
	}
	return raw("application/json", `{"unknown":[{}],"regions":[`+strings.Join(entries, ",")+`]}`)
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
}

// endless writes as fast as the client reads.
func endless(start string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(start))
		block := bytes.Repeat([]byte(" "), 64<<10)
		for range 64 << 20 / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
}

func TestHostileLists(t *testing.T) {
	const good = "https://" + region1
	var many []string
	for i := range 10_000 {
		many = append(many, fmt.Sprintf("https://r%d.livekit.cloud", i))
	}
	tests := []struct {
		name string
		list http.HandlerFunc
		good bool // region1 is in it, and is to be used
	}{
		{"a foreign host", listOf("https://evil.example.com", good), true},
		{"look-alikes", listOf("https://"+project+".evil.example.com", "https://notlivekit.cloud", "https://livekit.cloud", "https://evil.example.com/.livekit.cloud",
			"https://evil.example.com#.livekit.cloud", "https://evil.example.com?.livekit.cloud", "https://evil.example.com\\\\.livekit.cloud", good), true},
		{"http for https", listOf("http://"+region2, "ws://"+region2, good), true},
		{"user information", listOf("https://evil.example.com@"+region2, "https://"+region2+":x@evil.example.com", "https://u:p@"+region2, good), true},
		{"an address", listOf("ws://10.0.0.1", "wss://10.0.0.1", "https://[::1]", good), true},
		{"a Cloud API host", listOf("https://"+cloud, good), true},
		{"entries of every shape", listOf("7", "null", `{"url":7}`, `{"url":{}}`, `{}`, `["https://evil.example.com"]`, "", "::", "https://", "javascript:alert(1)", good), true},
		{"another scheme of the good one", listOf("wss://" + region1), true},
		{"10,000 entries, the good one first", listOf(append([]string{good}, many...)...), true},
		{"HTML", raw("text/html", "<html><body>https://evil.example.com</body></html>"), false},
		{"no object", raw("application/json", `["https://evil.example.com"]`), false},
		{"cut off", raw("application/json", `{"regions":[{"url":"https://one.livekit.cloud"},{"ur`), false},
		{"64 MiB", endless(`{"regions":[{"region":"x","url":"` + good + `"}`), true},
		{"64 MiB of nothing", endless(""), false},
		{"a drip", drip(200), false},
		{"a redirect to plain HTTP", redirect("http://" + project + "/elsewhere"), false},
		{"a redirect to another host", redirect("https://evil.example.com/settings/regions"), false},
		{"no body", raw("application/json", ""), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				home, one := w.serve(project, first(status(503), ok)), w.serve(region1, ok)
				home.setList(test.list)
				evil := map[string]*site{}
				for _, host := range []string{"evil.example.com", project + ".evil.example.com", "notlivekit.cloud", "livekit.cloud", region2, cloud, "10.0.0.1", "[::1]"} {
					evil[host] = w.serve(host, ok)
				}
				rt := w.secure().transport()
				r := w.post(context.Background(), rt, "https://"+project, failover.Call{})
				if r.status != 200 || r.took > 2200*time.Millisecond {
					t.Errorf("%d, %v after %v", r.status, r.err, r.took)
				}
				if used := len(one.asked()) == 1; used != test.good {
					t.Errorf("the good region was used: %t; the answer is %q", used, r.body)
				}
				for host, s := range evil {
					if n := len(s.asked()) + len(s.listed()); n > 0 {
						t.Errorf("%s was asked %d times", host, n)
					}
				}
				for _, a := range home.asked() {
					if a.path != method {
						t.Errorf("%s was asked for %s", project, a.path)
					}
				}
				// 64 KiB of the list; the rest is HTTP/2 and TLS, whose windows a server may fill.
				if n := w.net.Taken(project + ":443"); n > 6<<20 {
					t.Errorf("%d bytes were read from %s", n, project)
				}
			})
		})
	}
}

// Of a list without end, no more than 64 KiB are read.
func TestListIsReadUpToALimit(t *testing.T) {
	for name, list := range map[string]http.HandlerFunc{"good": endless(`{"regions":[{"region":"x","url":"http://` + region1 + `"}`), "nothing": endless("")} {
		inWorld(t, func(w *world) {
			home := w.serve(project, first(status(503), ok))
			w.serve(region1, ok)
			home.setList(list)
			if r := w.post(context.Background(), w.transport(), project, failover.Call{}); r.status != 200 {
				t.Errorf("%s: %d, %v", name, r.status, r.err)
			}
			if n := w.net.Taken(project + ":80"); n > 80<<10 { // with headers, net/http's buffer and the answers
				t.Errorf("%s: %d bytes were read", name, n)
			}
		})
	}
}

// A self-hosted project's list may name its own host and what Hosts and Origins name, and nothing else.
func TestTrustOfOnesOwnHosts(t *testing.T) {
	inWorld(t, func(w *world) {
		home := w.serve(own, status(503))
		home.setList(listOf("http://evil.example.com", "http://"+region1, "http://two.sfu.example.net"))
		evil, strange, good := w.serve("evil.example.com", ok), w.serve(region1, ok), w.serve("two.sfu.example.net", ok)
		rt := w.transport(failover.Hosts(own, "*.sfu.example.net"))
		r := w.post(context.Background(), rt, own, failover.Call{Repeat: failover.Safe})
		if r.status != 200 || len(good.asked()) != 1 || len(evil.asked())+len(strange.asked()) > 0 {
			t.Errorf("%d, %v; requests %v", r.status, r.err, requests(home, evil, strange, good))
		}
	})
}

// A token meant for TLS goes nowhere in clear text, also where an option names the place.
func TestOriginWithWeakerScheme(t *testing.T) {
	inWorld(t, func(w *world) {
		home, plain, eu := w.serve(own, status(503)), w.serve("plain.example.com", ok), w.serve("eu.example.com", ok)
		rt := w.transport(failover.Hosts(own), failover.Origins("http://plain.example.com", "https://eu.example.com"))
		r := w.post(context.Background(), rt, "https://"+own, failover.Call{Repeat: failover.Safe})
		if got := requests(home, plain, eu); r.status != 200 || got[1] != 0 || got[2] != 1 {
			t.Errorf("over https: %d, %v, requests %v", r.status, r.err, got)
		}
		r = w.post(context.Background(), rt, "http://"+own, failover.Call{Repeat: failover.Safe})
		if got := requests(home, plain, eu); r.status != 200 || got[1] != 1 {
			t.Errorf("over http: %d, %v, requests %v", r.status, r.err, got)
		}
	})
}
