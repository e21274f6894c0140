package failover_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// outlasting is a caller's context that package context does not know as one of its own. So it runs a goroutine for each context
// and function that is tied to it, until that is released, and they can be counted.
type outlasting struct {
	context.Context
	done chan struct{}
}

func (c outlasting) Done() <-chan struct{} { return c.done }

func newOutlasting(ctx context.Context) context.Context {
	c := outlasting{ctx, make(chan struct{})}
	context.AfterFunc(ctx, func() { close(c.done) })
	return c
}

// tied counts what is tied to contexts of that kind.
func tied() int {
	synctest.Wait()
	return len(goroutinesIn("context.(*cancelCtx).propagateCancel"))
}

// A context that outlasts its calls, as a server's does, has nothing tied to it when they are over: no function, no context, and so
// no timer of one.
func TestNothingIsLeftTiedToTheContext(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"well":                     ok,
		"refusing":                 status(403),
		"ill":                      status(503),
		"slow":                     after(8*time.Second, ok),
		"pinned":                   status(451),
		"silent":                   hang,
		"an error that never ends": drip(503),
	} {
		t.Run(name, func(t *testing.T) {
			for _, host := range hostsOfAllKinds {
				for _, limit := range []time.Duration{0, time.Hour} {
					inWorld(t, func(w *world) {
						w.serve(host, first(handler, ok)).setList(regions("60", region1, region2))
						w.serve(region1, handler)
						rt := w.transport(failover.Hosts(own))
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						if limit > 0 {
							ctx = within(w, limit)
						}
						ctx = newOutlasting(ctx)
						for class, call := range classes {
							if w.post(ctx, rt, host, call); tied() > 0 {
								t.Errorf("%s call to %s with limit %v: %d are tied to its context", class, host, limit, tied())
							}
						}
						for _, errs := range [][]error{{errDown}, {errDown, nil}, {nil}} {
							if dialled(ctx, rt, "ws://"+host, errs...); tied() > 0 {
								t.Errorf("Connect to %s with limit %v: %d are tied to its context", host, limit, tied())
							}
						}
					})
				}
			}
		})
	}
}

// Nor does a dial function that panics leave anything.
func TestPanicOfDialLeavesNothingTied(t *testing.T) {
	inWorld(t, func(w *world) {
		rt := w.transport()
		ctx := newOutlasting(within(w, time.Hour))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not reach the caller")
				}
			}()
			rt.Connect(ctx, "ws://"+project, token, func(context.Context, string) error { panic("dial") })
		}()
		if n := tied(); n > 0 {
			t.Errorf("%d are tied to its context", n)
		}
	})
}
