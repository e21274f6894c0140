package sockets

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/testdata/servers"
)

// loopback are the real connections of a test, gone at its end.
func loopback(t *testing.T) network {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return network{client: &http.Client{Transport: tr}}
}

// Joins against the test-server that LiveKit's own SDKs have to pass. A mode holds in the first region, in all of them, or
// nowhere; the others do what they should.
func TestJoinTestServer(t *testing.T) {
	s := servers.TestServer(t, 3)
	for _, test := range []struct {
		mode       string
		everywhere bool
		asked      []int // the last took the connection if there is no error
		lists      int
		err        string // what the error holds; "": there is none
		reading    bool   // only a dial function that reads the first message moves on; the other way ends at the first region
	}{
		{"happy", false, []int{0}, 0, "", false},
		{"validate_500", false, []int{0, 1}, 1, "", false},
		{"validate_500", true, []int{0, 1, 2}, 1, "500", false},
		{"room_not_found", false, []int{0}, 0, "404", false},
		{"validate_service_not_found", false, []int{0}, 0, "404", false},
		{"close_before_join", false, []int{0, 1}, 1, "", true},
		{"close_before_join", true, []int{0, 1, 2}, 1, "attempt 3", true},
		{"no_first_message", false, []int{0, 1}, 1, "", true},
	} {
		for _, way := range ways {
			name := test.mode + " first"
			if test.everywhere {
				name = test.mode + " everywhere"
			}
			t.Run(name+"/"+way.name, func(t *testing.T) {
				t.Parallel() // the regions that say nothing take 10 s each
				asked, lists, wantErr := test.asked, test.lists, test.err
				if test.reading && !way.reads {
					asked, lists, wantErr = []int{0}, 0, " "
				}
				tokens := map[int]string{}
				for region := range s.URLs {
					if region == 0 || test.everywhere {
						tokens[region] = mint(t, s.Key, s.Secret, test.mode)
					}
				}
				f := newFront(t, s.URLs, tokens)
				rt := newTransport(t, nil, failover.Hosts("127.0.0.1"))
				limit := time.Minute
				if test.mode == "no_first_message" && !way.reads {
					limit = 5 * time.Second // nothing else ends the wait
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				conn, err := way.join(ctx, rt, loopback(t), f.url, mint(t, s.Key, s.Secret, "happy"))
				f.check(t, asked, lists)
				if wantErr != "" {
					if err == nil || !strings.Contains(err.Error(), wantErr) {
						t.Errorf("the error is %v, want one with %q", err, wantErr)
					}
					f.settles(t, map[int]int{})
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				last := asked[len(asked)-1]
				join := conn.joined(t)
				if got := join.GetServerRegion(); got != []string{"region-0", "region-1", "region-2"}[last] {
					t.Errorf("joined in %s, want region %d", got, last)
				}
				if join.GetRoom().GetName() != roomName || join.GetParticipant().GetIdentity() != identity {
					t.Errorf("joined %v as %v", join.GetRoom(), join.GetParticipant())
				}
				cancel() // the connection outlives its call, and no other is left
				f.settles(t, map[int]int{last: 1})
				conn.lives(t)
				conn.close()
				f.settles(t, map[int]int{})
			})
		}
	}
}

// A token that is refused ends it: no other region would take it.
func TestRefusedToken(t *testing.T) {
	s := servers.TestServer(t, 2)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := newFront(t, s.URLs, nil)
			rt := newTransport(t, nil, failover.Hosts("127.0.0.1"))
			token := mint(t, s.Key, "not the server's secret, and long enough", "happy")
			_, err := way.join(t.Context(), rt, loopback(t), f.url, token)
			if err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), token) {
				t.Errorf("got %v", err)
			}
			f.check(t, []int{0}, 0)
		})
	}
}

// livekit-server takes joins with tokens of package auth, and refuses others at once.
func TestJoinLiveKit(t *testing.T) {
	s := servers.LiveKit(t)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := newFront(t, []string{s.URL}, nil)
			rt := newTransport(t, nil, failover.Hosts("127.0.0.1"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := way.join(ctx, rt, loopback(t), f.url, mint(t, s.Key, "not the server's secret, and long enough", ""))
			if err == nil || !strings.Contains(err.Error(), "401") {
				t.Errorf("a token of someone else: %v", err)
			}
			conn, err := way.join(ctx, rt, loopback(t), f.url, mint(t, s.Key, s.Secret, ""))
			if err != nil {
				t.Fatal(err)
			}
			if join := conn.joined(t); join.GetRoom().GetName() != roomName || join.GetParticipant().GetIdentity() != identity {
				t.Errorf("joined %v as %v", join.GetRoom(), join.GetParticipant())
			}
			cancel()
			conn.lives(t)
			conn.close()
			f.settles(t, map[int]int{})
			f.check(t, []int{0, 0}, 0)
		})
	}
}
