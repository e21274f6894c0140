package failover

import "time"

// run makes attempts until one answer stands or none may follow. It returns a result with a response, or an error.
//
// No attempt over HTTP runs on the caller's goroutine, although that would save a healthy call a switch: net/http may hold
// the goroutine that sends or reads beyond the end of the context, when closing a connection takes its time, or when an HTTP/2
// peer that stopped reading keeps a window update from being written.
func (c *call) run() (*result, error) {
	defer c.finish()
	if c.endedBy() != nil {
		return nil, c.expired()
	}
	c.results = make(chan *result, c.pol.attempts+maxPinned) // room for every attempt: no send blocks
	c.tried, c.live, c.trail.Attempts = c.triedRoom[:0], c.liveRoom[:0], c.trailRoom[:0]
	c.start()
	c.launch(c.open(c.first, 0, c.t.carriers.of(c.first)))

	var end *result
	for end == nil {
		due, over := c.arm(), false
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
			c.timerSet = time.Time{}
			now, wall := time.Now(), c.wall()
			if over = c.ctx.Err() != nil || !wall.IsZero() && !now.Before(wall); !over { // no attempt begins after the end of the call
				end = c.tick(now)
			}
		case <-done:
			over = true
		}
		if !over {
			continue
		}
		select {
		case r := <-c.results: // an answer that is here already counts
			end = c.take(r)
		default:
			return nil, c.expired()
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
	a := &c.firstRoom
	if c.newest != nil {
		a = new(attempt)
	}
	a.call, a.origin, a.carrier, a.patience = c, o, via, c.pol.patienceWith(c.left())
	a.info = Attempt{Number: c.made, Origin: o.String(), Start: time.Now(), Wait: wait}
	if c.host != nil {
		a.listSeq = c.host.list.seq.Load()
	}
	a.begin()
	if c.req != nil {
		a.prepare()
	}
	if c.pending.set {
		c.logNext(&a.info, c.pending.verdict.reason)
	}
	c.pending = pending{}
	c.tried = append(c.tried, o)
	c.live = append(c.live, a)
	c.newest = a
	return a
}

// launch lets an attempt run beside the caller's goroutine, or, for a function of the caller's own, on it.
func (c *call) launch(a *attempt) {
	if c.inline {
		c.deliver(a, c.try(a))
		return
	}
	go c.fly(a)
}

// fly makes an attempt on a goroutine of its own, and delivers a result also if a transport or a hook of the user's ends that
// (runtime.Goexit). Their panic ends the program, as it does on any goroutine that nobody recovers.
func (c *call) fly(a *attempt) {
	var r *result
	defer func() {
		if r == nil {
			r = a.failed(errEnded)
		}
		c.deliver(a, r)
	}()
	r = c.try(a)
}

// complete fills in a result when its attempt is over.
func (c *call) complete(a *attempt, r *result) {
	r.info = a.info
	r.info.Duration = time.Since(a.info.Start)
	r.info.Status, r.info.Err = r.seen.status, scrubError(r.err, c.token)
	a.endContext(r)
}

// deliver hands a result to the caller's goroutine, or, when the call is over, reports it and lets it go.
func (c *call) deliver(a *attempt, r *result) {
	c.complete(a, r)
	c.mu.Lock()
	over, givenUp := c.over, a.given
	if a.given = true; !over && !givenUp {
		c.results <- r
	}
	c.mu.Unlock()
	switch {
	case givenUp: // and reported
		if r.resp != nil {
			r.resp.Body.Close()
		}
	case over:
		c.lose(r)
	}
}

// giveUp stands in for the result of an attempt that was ended and does not come back: closing a connection may take its time,
// and a user's transport need not look at its context.
func (c *call) giveUp(a *attempt) {
	r := &result{attempt: a, info: a.info, err: errSlow, seen: seen{failure: failedSlow}}
	if a.endedFor == errNoConnection && a.neverSent(true) {
		r.err, r.seen.failure = errNoConnection, failedUnsent
	}
	r.info.Duration, r.info.Err = time.Since(a.info.Start), r.err
	c.mu.Lock()
	defer c.mu.Unlock()
	if !a.given {
		a.given = true
		c.results <- r
	}
}

// lose reports an attempt whose call was decided without it.
func (c *call) lose(r *result) {
	if r.resp != nil {
		r.resp.Body.Close()
	}
	r.info.Reason = "not needed any more: the call was over"
	if c.trail.Expired {
		r.info.Reason = unanswered
	}
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
	c.giveUpProbe() // if a hook of the user's ended the call
	if len(c.live) > 0 {
		why := c.endedBy()
		if why == nil {
			why = errLost
		}
		for _, a := range c.live {
			a.cancel(why)
			a.untie()
		}
	}
	for len(c.results) > 0 {
		c.lose(<-c.results)
	}
	if c.info.Trail != nil {
		*c.info.Trail = c.trail
	}
}
