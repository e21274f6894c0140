package failover

import (
	"sync"
	"time"
)

const (
	firstCoolDown   = 30 * time.Second
	longestCoolDown = 5 * time.Minute
)

// health remembers, for one configured origin, where calls start. Safe for concurrent use. The zero value starts at the
// configured origin.
type health struct {
	mu       sync.Mutex
	home     origin // where calls start; zero: the configured origin
	streak   int    // calls in a row that failed at the start with blameSecond and then succeeded elsewhere
	coolDown time.Duration
	probeAt  time.Time
	probing  bool
	doubt    bool      // home failed a call that asked nobody else: what might be lost by a probe may be lost there as well
	pinned   time.Time // home was chosen by a 451 and stays until then
}

// start says where a call begins. probe: this call tries the configured origin on behalf of all; it must be followed by
// report or release. mayProbe is false for calls that should not be risked, unless where they start has failed such a call.
func (h *health) start(configured origin, now time.Time, mayProbe bool) (at origin, probe bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.home == (origin{}):
		return configured, false
	case !h.pinned.IsZero():
		if now.Before(h.pinned) {
			return h.home, false
		}
		h.reset()
		return configured, false
	case (mayProbe || h.doubt) && !h.probing && !now.Before(h.probeAt):
		h.probing = true
		return configured, true
	}
	return h.home, false
}

// report tells how a call went that started at `started` and was answered by `answered`; worst is the gravest blame among
// its failures at started.
func (h *health) report(configured, started, answered origin, worst blame, probe bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if probe {
		h.probing = false
	}
	if !h.pinned.IsZero() {
		h.reportPinned(configured, started, answered, worst)
		return
	}
	if answered == started {
		h.streak = 0
		h.doubt = h.doubt && started != h.home
		if started == configured && (probe || h.home == (origin{})) {
			h.reset()
		}
		return
	}
	if worst == blameNone {
		if probe { // it told nothing
			h.probeAt = now.Add(h.coolDown)
		}
		return
	}
	current := h.home
	if current == (origin{}) {
		current = configured
	}
	if started != current && !probe {
		return // a late report: others have moved on already
	}
	if worst == blameSecond && !probe {
		if h.streak++; h.streak < 2 {
			return
		}
	}
	h.streak = 0
	if answered == configured {
		h.reset()
		return
	}
	h.home, h.doubt = answered, false
	if started == configured {
		h.coolDown = min(max(2*h.coolDown, firstCoolDown), longestCoolDown)
		h.probeAt = now.Add(h.coolDown)
	}
}

// reportPinned is report while a 451 keeps calls away from the configured origin: of the allowed regions the one that answers is
// home. Called with mu held.
func (h *health) reportPinned(configured, started, answered origin, worst blame) {
	switch {
	case started != h.home: // a late report
	case answered == started:
		h.streak = 0
	case answered == configured: // it is allowed again
		h.reset()
	case worst == blameSecond && h.streak == 0:
		h.streak = 1
	case worst != blameNone:
		h.home, h.streak = answered, 0
	}
}

// release ends a probe that told nothing: its call was cancelled, or failed everywhere.
func (h *health) release(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.probing {
		h.probing = false
		h.probeAt = now.Add(h.coolDown)
	}
}

// lost tells of a call that started at `started`, failed there, and asked no other origin.
func (h *health) lost(started origin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubt = h.doubt || started == h.home
}

// pin makes a region home until the list that named it is stale.
func (h *health) pin(home origin, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reset()
	h.home, h.pinned = home, until
}

func (h *health) reset() {
	h.home, h.streak, h.coolDown, h.pinned, h.doubt = origin{}, 0, 0, time.Time{}, false
}
