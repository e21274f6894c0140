package cloudtest

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// Break is a fault at work on a host. Safe for concurrent use.
type Break struct {
	host *Host

	// A fault of requests.
	fault   Fault
	matches []func(*http.Request) bool

	// A fault of the network.
	network bool
	cuts    bool  // connections are reset when it begins
	dialErr error // nil: a dial hangs
	undo    func()

	starting sync.Mutex // begin and undo, one after the other
	begun    bool

	later, lasts time.Duration
	over         chan struct{} // closed by Clear

	mu      sync.Mutex
	skip    int
	left    int // uses left; negative: no limit
	active  bool
	cleared bool
	hits    int
	timers  []*time.Timer
}

// Match says which requests a fault applies to: On, If, or a When. nil is no condition.
type Match interface{ narrow(*Break) }

// When says at what times a fault applies: Times, Skip, Later, For. nil is no condition.
type When func(*Break)

func (w When) narrow(b *Break) {
	if w != nil {
		w(b)
	}
}

type requestMatch func(*http.Request) bool

func (m requestMatch) narrow(b *Break) {
	if m != nil {
		b.matches = append(b.matches, m)
	}
}

// Patterns for On.
const (
	API        = "/twirp/"           // the server APIs
	RTC        = "/rtc"              // the connections of participants, and what validates them
	RegionList = "/settings/regions" // the list of regions
)

// On narrows a fault to requests whose path fits one of the patterns: API, RTC, RegionList, a method such as
// "RoomService/ListRooms", all methods of a service as in "RoomService/", or any path that begins with a slash. A path that
// ends with a slash also stands for all below it.
func On(patterns ...string) Match {
	return requestMatch(func(r *http.Request) bool {
		for _, p := range patterns {
			if fits(p, r.URL.Path) {
				return true
			}
		}
		return false
	})
}

func fits(pattern, path string) bool {
	switch {
	case pattern == "":
		return false
	case pattern == API:
		return strings.Contains(path, API)
	case pattern == RTC:
		return isRTC(path)
	case pattern[0] != '/':
		_, path, _ = strings.Cut(path, API)
		path = strings.TrimPrefix(path, "livekit.")
	}
	return path == pattern || strings.HasSuffix(pattern, "/") && strings.HasPrefix(path, pattern)
}

// If narrows a fault to requests for which f returns true. f sees the request before its body is read, may be called from
// several goroutines at once, and must not keep it. nil is no condition.
func If(f func(*http.Request) bool) Match { return requestMatch(f) }

// Times limits a fault to its first n uses.
func Times(n int) When { return func(b *Break) { b.left = max(n, 0) } }

// Skip lets the first n requests or dials pass that the fault would have applied to.
func Skip(n int) When { return func(b *Break) { b.skip = max(n, 0) } }

// Later lets a fault begin after d.
func Later(d time.Duration) When { return func(b *Break) { b.later = d } }

// For clears a fault after d, counted from its beginning.
func For(d time.Duration) When { return func(b *Break) { b.lasts = d } }

// Break puts a fault on the requests that arrive at the host from now on. All matches must hold; without any it is every
// request, those for the region list included. Of several faults that apply to a request, the newest is used.
func (h *Host) Break(f Fault, matches ...Match) *Break {
	b := newBreak(h)
	b.fault = f
	for _, m := range matches {
		if m != nil {
			m.narrow(b)
		}
	}
	return b.put(nil)
}

func newBreak(h *Host) *Break { return &Break{host: h, left: -1, over: make(chan struct{})} }

// put sets the fault on its host, now or later. begin is called when it begins.
func (b *Break) put(begin func()) *Break {
	b.host.mu.Lock()
	b.host.breaks = append(b.host.breaks, b)
	b.host.mu.Unlock()
	start := func() {
		b.starting.Lock()
		defer b.starting.Unlock()
		b.mu.Lock()
		if b.cleared {
			b.mu.Unlock()
			return
		}
		b.active = true
		if b.lasts > 0 {
			b.timers = append(b.timers, time.AfterFunc(b.lasts, b.Clear))
		}
		b.mu.Unlock()
		if b.begun = true; begin != nil {
			begin()
		}
	}
	if b.later <= 0 {
		start()
		return b
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timers = append(b.timers, time.AfterFunc(b.later, start))
	return b
}

// Clear ends the fault. What it has done to a request or a connection before stays done, but a dial that hangs goes through,
// and frozen connections go on. Clearing twice is harmless.
func (b *Break) Clear() {
	b.mu.Lock()
	if b.cleared {
		b.mu.Unlock()
		return
	}
	b.cleared = true
	for _, t := range b.timers {
		t.Stop()
	}
	close(b.over)
	b.mu.Unlock()
	b.host.forget(b)
	b.starting.Lock()
	defer b.starting.Unlock()
	if b.undo != nil && b.begun {
		b.undo()
	}
}

// Hits returns how often the fault was used: requests it answered or spoiled, dials it stopped, connections it cut or froze.
func (b *Break) Hits() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hits
}

// use reports whether the fault applies now, and counts that.
func (b *Break) use() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.active, b.cleared, b.left == 0:
		return false
	case b.skip > 0:
		b.skip--
		return false
	case b.left > 0:
		b.left--
	}
	b.hits++
	return true
}

// pending reports whether the fault would apply now.
func (b *Break) pending() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.active && !b.cleared && b.left != 0 && b.skip == 0
}

// add counts uses that need no permission.
func (b *Break) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hits += n
}

// Heal clears every fault of the host.
func (h *Host) Heal() {
	for _, b := range h.broken() {
		b.Clear()
	}
}

// broken returns the host's faults, the newest first.
func (h *Host) broken() []*Break {
	h.mu.Lock()
	defer h.mu.Unlock()
	newest := make([]*Break, 0, len(h.breaks))
	for i := len(h.breaks) - 1; i >= 0; i-- {
		newest = append(newest, h.breaks[i])
	}
	return newest
}

func (h *Host) forget(b *Break) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, x := range h.breaks {
		if x == b {
			h.breaks = append(h.breaks[:i:i], h.breaks[i+1:]...)
			return
		}
	}
}

// requestFault returns the fault for a request, nil if there is none.
func (h *Host) requestFault(r *http.Request) *Break {
	for _, b := range h.broken() {
		if !b.network && b.applies(r) && b.use() {
			return b
		}
	}
	return nil
}

func (b *Break) applies(r *http.Request) bool {
	for _, match := range b.matches {
		if !match(r) {
			return false
		}
	}
	return true
}
