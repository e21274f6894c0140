package failover

import (
	"sync"
	"time"
)

// watch wakes the calls whose first attempt has not ended after dialLimit, as hardly any is. One timer serves all calls of a
// Transport: setting one for each costs a healthy call more than most of this package does, since the runtime wakes a thread
// to wait for every timer that is the next to expire. It is left to expire when the calls are over, and then not set again.
// The zero value is ready. Safe for concurrent use.
type watch struct {
	mu          sync.Mutex
	first, last *call // by the time they are due; since all get the same time, that is as they came
	timer       *time.Timer
	set         bool // the timer will expire
}

// watched is a call's place in a watch; the watch's mutex guards it.
type watched struct {
	due        time.Time
	prev, next *call
	on         bool
}

// add lets c.takeOver be called in dialLimit, on a goroutine of its own.
func (w *watch) add(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.watched = watched{due: time.Now().Add(dialLimit), prev: w.last, on: true}
	if w.last == nil {
		w.first = c
	} else {
		w.last.watched.next = c
	}
	w.last = c
	if !w.set {
		w.setTimer(dialLimit)
	}
}

// remove keeps c.takeOver from being called, and reports whether it did.
func (w *watch) remove(c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	on := c.watched.on
	if on {
		w.unlink(c)
	}
	return on
}

func (w *watch) unlink(c *call) {
	prev, next := c.watched.prev, c.watched.next
	if prev == nil {
		w.first = next
	} else {
		prev.watched.next = next
	}
	if next == nil {
		w.last = prev
	} else {
		next.watched.prev = prev
	}
	c.watched = watched{}
}

func (w *watch) setTimer(d time.Duration) {
	w.set = true
	if w.timer == nil {
		w.timer = time.AfterFunc(d, w.expired)
		return
	}
	w.timer.Reset(d)
}

func (w *watch) expired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set = false
	now := time.Now()
	for c := w.first; c != nil; c = w.first {
		if wait := c.watched.due.Sub(now); wait > 0 {
			w.setTimer(wait)
			return
		}
		w.unlink(c)
		go c.takeOver()
	}
}

// close stops the timer if nothing waits for it.
func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil && w.timer != nil {
		w.timer.Stop()
		w.set = false
	}
}
