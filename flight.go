package lkrpc

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// flightKey is what two callers of EnsureDispatch must have in common to share a flight.
type flightKey struct{ room, agent, deployment string }

// flight is one EnsureDispatch for all who wait for it.
type flight struct {
	key      flightKey
	cancel   context.CancelFunc
	waiting  int         // under flights.mu
	creating atomic.Bool // a creation is under way, or its outcome is unknown
	claimed  atomic.Bool // a caller was told created=true

	done     chan struct{} // closed when what follows is set
	dispatch *livekit.AgentDispatch
	created  bool
	err      error
	panicked *flightPanic
}

// flightPanic is a panic on the flight's own goroutine, of credentials or an interceptor, on its way to those who wait: only on
// their goroutines can their own recover. It holds the stack of where it began, which theirs does not show.
type flightPanic struct {
	value any
	stack []byte
}

func (p *flightPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// Unwrap returns what was panicked with, if it is an error.
func (p *flightPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// run flies. That do panics or ends its goroutine (runtime.Goexit) is a result like others. If nobody waits any more it is lost,
// since each who did was told how its wait ended.
func (f *flight) run(ctx context.Context, do func(context.Context, *flight)) {
	over := false
	defer func() {
		if v := recover(); v != nil {
			f.panicked = &flightPanic{v, debug.Stack()}
		} else if !over {
			lost := localError(twirp.Internal, "credentials or an interceptor ended the goroutine (runtime.Goexit)", nil).named(ensureName)
			lost.OutcomeUnknown = f.creating.Load()
			f.err = lost
		}
	}()
	do(ctx, f)
	over = true
}

// landed reports whether the flight is over.
func (f *flight) landed() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// flights are those in the air. Safe for concurrent use; the zero value is empty.
type flights struct {
	mu  sync.Mutex
	air map[flightKey]*flight
}

// join returns the flight for key, which do runs if there is none. do gets the values of the first caller's context, but ends
// only when nobody waits any more. Each join is followed by one leave.
func (fs *flights) join(ctx context.Context, key flightKey, do func(context.Context, *flight)) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.air[key]; f != nil {
		f.waiting++
		return f
	}
	if fs.air == nil {
		fs.air = make(map[flightKey]*flight)
	}
	f := &flight{key: key, waiting: 1, done: make(chan struct{})}
	fs.air[key] = f
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(f.done) // also when run ends the goroutine
		defer fs.land(f)
		defer f.cancel()
		f.run(ctx, do)
	}()
	return f
}

// leave ends a caller's wait, and reports whether a creation is under way or its outcome unknown. When the last one leaves before
// the flight is over, it is cancelled, and the next caller begins another; unless there is a creation, whose outcome the next
// caller must not be without.
func (fs *flights) leave(f *flight) (creating bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	creating = f.creating.Load()
	if f.waiting--; f.waiting == 0 && !creating {
		f.cancel()
		fs.remove(f)
	}
	return creating
}

// create begins a creation, unless the flight is cancelled. It is one step for those who leave: none of them hears that nothing
// was created, or cancels the flight, when the request is about to go out.
func (fs *flights) create(ctx context.Context, f *flight) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	f.creating.Store(true)
	return nil
}

func (fs *flights) land(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.remove(f)
}

func (fs *flights) remove(f *flight) {
	if fs.air[f.key] == f {
		delete(fs.air, f.key)
	}
}
