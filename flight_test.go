package lkrpc_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
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
