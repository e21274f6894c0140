package lkrpc_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

var errVault = errors.New("the vault is on fire")

// panicOf calls f and returns what it panicked with.
func panicOf(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// A caller's code that panics during EnsureDispatch does so on the goroutine of each who waits, where they can recover it.
func TestEnsureDispatchPanics(t *testing.T) {
	for _, c := range []struct {
		name string
		with any
	}{{"an error", errVault}, {"text", "the vault is on fire"}, {"nil", nil}} {
		for _, where := range []string{"credentials", "interceptor"} {
			t.Run(c.name+"/"+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var healed bool
					fail := func() {
						if !healed {
							<-time.After(time.Second) // for the others to join
							panic(c.with)
						}
					}
					creds, opt := auth.Credentials(auth.APIKey(testKey, testSecret)), lkrpc.WithInterceptors()
					if where == "credentials" {
						creds = tokens(func(context.Context, *auth.ClaimGrants) (string, error) { fail(); return "", errVault })
					} else {
						opt = lkrpc.WithInterceptors(func(next twirp.Method) twirp.Method {
							return func(ctx context.Context, req any) (any, error) { fail(); return nil, errVault }
						})
					}
					client, err := lkrpc.New("h", creds, lkrpc.WithHTTPTransport(&recorder{}), opt)
					if err != nil {
						t.Fatal(err)
					}
					defer client.Close()

					var wg sync.WaitGroup
					for range 3 {
						wg.Go(func() {
							v := panicOf(func() { client.EnsureDispatch(background, support) })
							err, ok := v.(error)
							if !ok || c.with != nil && !strings.Contains(err.Error(), "the vault is on fire") || !strings.Contains(err.Error(), "flight_test.go") {
								t.Errorf("panicked with %T %v, want an error that says what and where", v, v)
							}
							if c.with == errVault && !errors.Is(err, errVault) {
								t.Errorf("%T is not the error that was panicked with", v)
							}
						})
					}
					wg.Wait()

					healed = true // the flight has landed: the next caller begins another
					if _, _, err := client.EnsureDispatch(background, support); !errors.Is(err, errVault) {
						t.Errorf("after the panic: %v, want the error of a new flight", err)
					}
				})
			})
		}
	}
}

// runtime.Goexit, which a testing.T in a fake calls, ends the flight with an error; what was created by then is not denied.
func TestEnsureDispatchGoexit(t *testing.T) {
	for _, c := range []struct {
		before  string // the call that is not survived
		unknown bool
	}{{"ListRooms", false}, {"ListDispatch", true}} {
		t.Run(c.before, func(t *testing.T) {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, _ *lkrpc.Client) {
				client, err := lkrpc.New(cloud.URL, auth.APIKey(cloud.Key, cloud.Secret), lkrpc.WithHTTPTransport(cloud.Transport()),
					lkrpc.WithInterceptors(func(next twirp.Method) twirp.Method {
						return func(ctx context.Context, req any) (any, error) {
							if name, _ := twirp.MethodName(ctx); name == c.before {
								runtime.Goexit()
							}
							return next(ctx, req)
						}
					}))
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				d, created, err := client.EnsureDispatch(background, support)
				var e *lkrpc.Error
				if !errors.As(err, &e) || e.Code() != twirp.Internal || e.OutcomeUnknown != c.unknown || created || d != (*livekit.AgentDispatch)(nil) {
					t.Errorf("%v, created %v, %v; want an internal *Error, outcome unknown %v", d, created, err, c.unknown)
				}
			})
		})
	}
}

// Credentials that hang hold no caller beyond its own time, and no later one: a look is given up with its last caller, and a
// creation has seconds. Those that heed no context can do no more than that, though a creation of theirs is waited for.
func TestEnsureDispatchWhileCredentialsHang(t *testing.T) {
	for _, c := range []struct {
		name     string
		hang     int64 // of the tokens, the first is 1
		heedless bool
		unknown  bool // a creation may be on its way, for all the caller can know
	}{
		{"in a look", 1, false, false},
		{"in a look, without heeding the context", 1, true, false},
		{"in the second look", 2, false, false},
		{"in a creation", 3, false, true},
		{"in a creation, without heeding the context", 3, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, maker *lkrpc.Client) {
				makeRoom(t, maker)
				signer := auth.APIKey(cloud.Key, cloud.Secret)
				var asked atomic.Int64
				release := make(chan struct{})
				client, err := lkrpc.New(cloud.URL, tokens(func(ctx context.Context, g *auth.ClaimGrants) (string, error) {
					if asked.Add(1) != c.hang {
						return signer.Token(ctx, g)
					}
					done := ctx.Done()
					if c.heedless {
						done = nil
					}
					select {
					case <-done:
						return "", ctx.Err()
					case <-release:
						return "", errors.New("too late")
					}
				}), lkrpc.WithHTTPTransport(cloud.Transport()))
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				limited, cancel := context.WithTimeout(background, 2*time.Second)
				defer cancel()
				began := time.Now()
				_, _, err = client.EnsureDispatch(limited, support)
				var e *lkrpc.Error
				if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || e.OutcomeUnknown != c.unknown || time.Since(began) != 2*time.Second {
					t.Errorf("%v after %v, want the deadline, outcome unknown %v", err, time.Since(began), c.unknown)
				}
				limited, cancel = context.WithTimeout(background, 10*time.Second)
				defer cancel()
				_, created, err := client.EnsureDispatch(limited, support)
				switch held := c.unknown && c.heedless; {
				case held && (!errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 12*time.Second):
					t.Errorf("a later caller: %v after %v, want its own deadline", err, time.Since(began))
				case c.unknown && !c.heedless && (err == nil || time.Since(began) > 6*time.Second):
					t.Errorf("a later caller: %v after %v, want the end of the creation's five seconds", err, time.Since(began))
				case !c.unknown && (err != nil || !created):
					t.Errorf("a later caller: created %v, %v; want a flight of its own", created, err)
				}
				close(release)
				synctest.Wait()
				d, _, err := client.EnsureDispatch(background, support)
				if err != nil {
					t.Fatalf("in the end: %v", err)
				}
				wantOne(t, cloud, d)
			})
		})
	}
}

// Without a deadline EnsureDispatch ends as documented where nobody answers.
func TestEnsureDispatchEndsWhereNobodyAnswers(t *testing.T) {
	for _, c := range []struct {
		host        string
		least, most time.Duration
	}{{"", 110 * time.Second, 125 * time.Second}, {"sfu.example.com", 35 * time.Second, 45 * time.Second}} {
		inCloud(t, func(t *testing.T, cloud *cloudtest.Cloud, client *lkrpc.Client) {
			if c.host != "" {
				h, err := cloud.AddHost(c.host)
				if err != nil {
					t.Fatal(err)
				}
				h.Break(cloudtest.Hang())
				client = clientOf(t, cloud, "https://"+c.host)
				defer client.Close()
			}
			for _, h := range cloud.Regions() {
				h.Break(cloudtest.Hang())
			}
			began := time.Now()
			_, _, err := client.EnsureDispatch(background, support)
			if took := time.Since(began); !errors.Is(err, lkrpc.ErrCannotTell) || took < c.least || took > c.most {
				t.Errorf("%s: %v after %v, want ErrCannotTell after %v to %v", client, err, took, c.least, c.most)
			}
		})
	}
}
