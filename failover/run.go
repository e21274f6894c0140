package failover

import (
	"net/http/httptrace"
	"runtime"
	"time"
)

// run makes attempts until one answer stands or none may follow. It returns a result with a response, or an error.
//
// The first attempt runs on the caller's goroutine where its transport is known to return as soon as a context is done, so
// that a healthy call switches goroutines no more often than with net/http alone. When something becomes due before that
// attempt is over, a goroutine made for it leads the call from then on, and the caller returns what that one came to.
func (c *call) run() (*result, error) {
	defer c.finish()
	if c.ctx.Err() != nil {
		return nil, c.expired()
	}
	c.tried, c.live, c.trail.Attempts = c.triedRoom[:0], c.liveRoom[:0], c.trailRoom[:0]
	c.start()
	a := c.open(c.first, 0, carrier{})
	if c.pol.rtc || !a.carrier.prompt || httptrace.ContextClientTrace(c.caller) != nil { // hooks of the caller's may hang
		c.launch(a)
		return c.lead(nil)
	}
	c.led.Add(1)
	c.t.watch.add(c)
	r := c.try(a)
	if c.t.watch.remove(c) {
		c.settle(a, r)
		return c.lead(c.take(r))
	}
	c.deliver(a, r)
	c.led.Wait()
	switch {
	case c.panicked != nil:
		panic(c.panicked)
	case c.end == nil && c.err == nil:
		runtime.Goexit()
	}
	return c.end, c.err
}

// takeOver leads the call while the caller's goroutine is busy with the first attempt. How a function of the user's ends this
// goroutine, by a panic or runtime.Goexit, it ends that one.
func (c *call) takeOver() {
	defer c.led.Done()
	defer func() { c.panicked = recover() }()
	defer c.finish() // which also frees that goroutine
	c.makeResults()
	c.end, c.err = c.lead(c.tick(time.Now()))
}

// lead runs the call to its end, from where it stands now: end is the result that ends it, or nil while there is none.
func (c *call) lead(end *result) (*result, error) {
	for end == nil {
		due := c.arm()
		var read <-chan struct{}
		if c.pending.set && c.pending.read != nil {
			read = c.pending.read.done
		}
		done := c.ctx.Done()
		if c.inline && len(c.live) > 0 {
			done = nil // what the caller's own function has opened must not be lost
		}
		select {
		case r := <-c.results:
			end = c.take(r)
		case <-read:
			end = c.listed()
		case <-due:
			if c.ctx.Err() == nil { // no attempt begins after the end of the call
				end = c.tick(time.Now())
			}
		case <-done:
			select {
			case r := <-c.results: // an answer that is here already counts
				end = c.take(r)
			default:
				return nil, c.expired()
			}
		}
	}
	return c.conclude(end)
}

// open makes the attempt that comes next, and counts it as begun.
func (c *call) open(o origin, wait time.Duration, via carrier) *attempt {
	if c.pending.set && c.pending.verdict.step == stepPinned {
		c.trail.Pinned++
	} else {
		c.made++
	}
	if via.rt == nil {
		via = c.t.carriers.of(o)
	}
	a := &attempt{call: c, origin: o, carrier: via, patience: c.pol.patienceWith(c.left()),
		info: Attempt{Number: c.made, Origin: o.String(), Start: time.Now(), Wait: wait}}
	if c.host != nil {
		a.listSeq = c.host.list.seq.Load()
	}
	a.begin()
	if c.pending.set {
		c.logNext(&a.info, c.pending.verdict.reason)
	}
	c.pending = pending{}
	c.tried = append(c.tried, o)
	c.live = append(c.live, a)
	c.newest = a
	return a
}

// launch lets an attempt run beside the goroutine that leads the call, or, for a function of the caller's own, on it.
func (c *call) launch(a *attempt) {
	c.makeResults()
	if c.inline {
		c.deliver(a, c.try(a))
		return
	}
	go func() { c.deliver(a, c.try(a)) }()
}

// makeResults makes the channel of results, with room for every attempt, so that no send blocks.
func (c *call) makeResults() {
	c.mu.Lock()
	if c.results == nil {
		c.results = make(chan *result, c.pol.attempts+maxPinned)
	}
	c.mu.Unlock()
}

// settle completes a result when its attempt is over.
func (c *call) settle(a *attempt, r *result) {
	r.info = a.info
	r.info.Duration = time.Since(a.info.Start)
	r.info.Status, r.info.Err = r.seen.status, scrubError(r.err)
	a.settleContext(r)
}

// deliver hands a result to the goroutine that leads the call, or, when the call is over, reports it and lets it go.
func (c *call) deliver(a *attempt, r *result) {
	c.settle(a, r)
	c.makeResults()
	c.mu.Lock()
	over := c.over
	if !over {
		c.results <- r
	}
	c.mu.Unlock()
	if over {
		c.lose(r)
	}
}

// lose reports an attempt whose call was decided without it.
func (c *call) lose(r *result) {
	if r.resp != nil {
		r.resp.Body.Close()
	}
	r.info.Reason = "not needed any more: the call was over"
	c.report(&r.info)
}

// finish ends what is still running. Results that arrive from now on are reported by the attempts themselves.
func (c *call) finish() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	for _, a := range c.live {
		a.cancel(errLost)
	}
	for len(c.results) > 0 {
		c.lose(<-c.results)
	}
	if c.info.Trail != nil {
		*c.info.Trail = c.trail
	}
}
