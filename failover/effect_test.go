package failover_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// A connection that failed is none: whoever asks for it again does nothing twice, however the attempt ended.
func TestConnectionHasNoUnknownOutcome(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"500": status(500), "hangs up": hangUp, "408": status(408), "hangs": hang} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(w *world, connect connector) {
				w.serve(project, answer)
				var trail failover.Trail
				ctx := failover.WithCall(within(w, 5*time.Second), &failover.Call{Trail: &trail})
				s, _, err := connect(w, ctx, w.transport(), project)
				if s != nil || len(trail.Attempts) == 0 || trail.OutcomeUnknown {
					w.t.Errorf("connected: %t; %v; the trail is %+v", s != nil, err, trail)
				}
				if err != nil && strings.Contains(err.Error(), "outcome unknown") {
					w.t.Errorf("got %v", err)
				}
			})
		})
	}
}

// The text of an Error holds no token, whoever made it: wrappers and tests of users fill in their own.
func TestErrorsOfOthersHoldNoToken(t *testing.T) {
	e := &failover.Error{Op: "connect", Host: project, Err: errors.New("refused: Bearer " + token)}
	wantNoToken(t, "an error that somebody made", e.Error())
	if !strings.Contains(e.Error(), "refused: ") {
		t.Errorf("%q lost its text", e.Error())
	}
}

// A cancelled connection is over without doubt too.
func TestCancelledConnectionHasNoUnknownOutcome(t *testing.T) {
	bothWays(t, func(w *world, connect connector) {
		w.serve(project, hang)
		var trail failover.Trail
		ctx, cancel := context.WithCancel(failover.WithCall(context.Background(), &failover.Call{Trail: &trail}))
		time.AfterFunc(time.Second, cancel)
		if s, _, err := connect(w, ctx, w.transport(), project); s != nil || !errors.Is(err, context.Canceled) || trail.OutcomeUnknown {
			w.t.Errorf("connected: %t; %v; outcome unknown %t", s != nil, err, trail.OutcomeUnknown)
		}
	})
}
