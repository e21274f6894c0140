package failover

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// conclude turns the result that ends the call into what the caller gets.
func (c *call) conclude(r *result) (*result, error) {
	if r.seen.failure == failedContext {
		return nil, c.expired()
	}
	v := c.pol.classify(r.seen)
	c.closeTrail(errLost)
	c.learn(r, v)
	if v.step != stepDone {
		c.trail.RetryAfter = r.retryAfter
		c.trail.OutcomeUnknown = c.mayHaveEffect()
	}
	switch {
	case r.err != nil:
		return nil, c.fail(r.err)
	case r.seen.redirect:
		return nil, c.fail(fmt.Errorf("%s to %s: redirects are not followed, since the token would go along",
			statusReason(r.seen.status), redirectHost(r.attempt.origin, r.location)))
	case v.step != stepDone:
		c.logFailure(statusReason(r.seen.status))
	}
	return r, nil
}

// learn keeps what later calls should know.
func (c *call) learn(r *result, v verdict) {
	if c.host == nil || c.pol.rtc {
		return
	}
	now := time.Now()
	answered := v.step == stepDone || v.step == stepStop && r.seen.status >= 400 && r.seen.status < 500
	switch {
	case !answered:
		c.giveUpProbe()
		if v.blame == blameAtOnce {
			c.doubtStart()
		}
	case c.trail.Pinned > 0 && c.sentAway:
		c.giveUpProbe()
		until := now.Add(defaultListAge)
		if cur, _ := c.host.list.get(now); cur != nil {
			until = cur.fresh
		}
		if r.attempt.origin == c.configured { // it is allowed again: nothing is to be remembered
			until = now
		}
		c.host.health.pin(r.attempt.origin, until)
	case v.step != stepDone && r.attempt.origin != c.first: // a region that only refuses is no place to move to
		c.giveUpProbe()
	default:
		worst := blameNone
		for _, f := range c.failed {
			if f.origin == c.first {
				worst = max(worst, f.blame)
			}
		}
		c.host.health.report(c.configured, c.first, r.attempt.origin, worst, c.probe, now)
		c.probe = false
	}
	if answered && c.kind == projectHost && !c.t.noPrefetch && !c.t.off && !c.info.Off {
		c.host.list.readAhead(now, c.newRead)
	}
}

func (c *call) giveUpProbe() {
	if c.probe {
		c.probe = false
		c.host.health.release(time.Now())
	}
}

// doubtStart tells health of a failure at a remembered origin that no other origin was asked after.
func (c *call) doubtStart() {
	if len(c.tried) == 1 && c.tried[0] != c.configured {
		c.host.health.lost(c.tried[0])
	}
}

// mayHaveEffect seals what is still running and reports whether any attempt may have taken effect. A connection has none.
func (c *call) mayHaveEffect() bool {
	effect := c.unknown
	for _, a := range c.live {
		effect = !a.neverSent(true) || effect
	}
	return effect && !c.pol.rtc
}

// expired is the error of a call whose context is done.
func (c *call) expired() error {
	err := c.ctx.Err()
	if err == nil {
		err = context.DeadlineExceeded
	}
	c.trail.Expired = true
	c.trail.OutcomeUnknown = c.mayHaveEffect()
	c.closeTrail(err)
	if c.host != nil {
		c.giveUpProbe()
		if err == context.DeadlineExceeded && !c.pol.rtc {
			c.doubtStart()
		}
	}
	if cause := context.Cause(c.ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return c.fail(err)
}

func (c *call) fail(err error) error {
	e := &Error{Trail: c.trail, Op: c.name(), Host: c.configured.host, Err: scrubError(err, c.token)}
	e.Attempts = slices.Clone(e.Attempts)
	c.logFailure(textOf(e.Err))
	return e
}

// unanswered is what is said of an attempt that the end of the call's time met.
const unanswered = "no answer when the call ended"

// closeTrail adds what is still running, and puts the trail in the order in which the attempts began. No attempt's record is
// looked up after that.
func (c *call) closeTrail(why error) {
	for _, a := range c.live {
		info := a.info
		info.Duration, info.Err, info.Reason = time.Since(info.Start), why, unanswered
		c.trail.Attempts = append(c.trail.Attempts, info)
	}
	slices.SortStableFunc(c.trail.Attempts, func(a, b Attempt) int { return a.Start.Compare(b.Start) })
}

// redirectHost is where a redirect points, without the rest of the URL, which may hold anything.
func redirectHost(from origin, location string) string {
	u, err := url.Parse(location)
	switch {
	case err != nil:
		return "an unreadable URL"
	case u.Host == "":
		return "another path of " + from.host
	}
	return Scrub(u.Scheme + "://" + u.Host)
}
