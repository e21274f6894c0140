package failover

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// call is one logical call on its way, and decides which attempt comes next. Everything but the fields under mu belongs to
// the goroutine that called.
type call struct {
	t        *Transport
	caller   context.Context // as it came
	ctx      context.Context // the caller's, with a deadline of our own where it has none
	cancel   context.CancelFunc
	deadline time.Time // zero for RTC without a deadline of the caller's
	info     *Call
	pol      policy
	try      func(*attempt) *result
	inline   bool // an attempt runs on the caller's goroutine, and the call does not end before it

	req    *http.Request // a copy of the caller's, but for the header, which only the caller's goroutine reads; nil for Connect
	header http.Header   // of Connect, for the region list
	token  string        // for no text to show
	body   []byte

	kind       hostKind
	configured origin // where the call was made to
	host       *hostState
	first      origin // where the first attempt goes
	probe      bool   // the first attempt tries the configured origin for all

	tried    []origin
	made     int  // attempts begun, 451 steps left out
	sentAway bool // a 451 came from where the call started
	paid     bool // the next repeat has its token of the retry budget
	live     []*attempt
	newest   *attempt
	pending  pending
	last     *result // the failure that stands
	stood    string  // why no attempt may follow one that failed; empty while one may
	failed   []failedAt
	unknown  bool // an attempt that is over may have taken effect

	trail    Trail
	timer    *time.Timer // nil until something is to become due
	timerSet time.Time   // the moment; zero once it has come

	mu      sync.Mutex
	over    bool
	results chan *result

	// Room for what nearly every call needs, so that it takes no allocations of its own.
	trailRoom [1]Attempt
	triedRoom [1]origin
	liveRoom  [2]*attempt
	firstRoom attempt
	ownReq    http.Request
	ownURL    url.URL
}

// left is the time to the deadline, negative without one.
func (c *call) left() time.Duration {
	if c.deadline.IsZero() {
		return -1
	}
	return max(time.Until(c.deadline), 0)
}

// endedBy is why the call's time is over, nil if it is not. A transport that keeps time itself may give up in the moment of the
// deadline, before the context ends.
func (c *call) endedBy() error {
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	if c.left() == 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// failedAt is a failure that may be held against an origin once another one has answered.
type failedAt struct {
	origin origin
	blame  blame
}

// pending is the attempt that comes next.
type pending struct {
	verdict verdict
	of      *attempt  // the attempt that it follows
	retry   *result   // its result, nil while it still runs
	read    *listRead // what it waits for, if anything
	until   time.Time // the end of the wait, for the list or the backoff
	origin  origin    // where it goes, once known
	same    bool      // the same host again
	wait    time.Duration
	set     bool
}

// take reads a result. It returns the one that ends the call, if that is decided.
func (c *call) take(r *result) *result {
	a := r.attempt
	c.live = slices.DeleteFunc(c.live, func(x *attempt) bool { return x == a })
	v := c.pol.classify(r.seen)
	c.unknown = c.unknown || v.effect
	r.info.Reason = v.reason
	c.trail.Attempts = append(c.trail.Attempts, r.info)
	a.record = len(c.trail.Attempts)
	end := c.follow(r, v)
	c.report(&c.trail.Attempts[a.record-1])
	return end
}

// follow decides what follows a result.
func (c *call) follow(r *result, v verdict) *result {
	a := r.attempt
	if v.step == stepDone || v.step == stepStop {
		return r
	}
	if !c.pol.rtc || c.last == nil || !denies(c.last.seen.status) || denies(r.seen.status) { // which stays the error if all fail
		c.last = r
	}
	if v.step == stepRepeat {
		c.failed = append(c.failed, failedAt{a.origin, v.blame})
	}
	switch {
	case c.pending.set && c.pending.of != a, !c.pending.set && len(c.live) > 0 && a != c.newest:
		return nil // it was overtaken: what follows it is on its way
	case v.step == stepPinned:
		return c.elsewhere(a, v, r)
	case c.stood != "":
		return c.stand(a, c.stood)
	case c.pending.set: // it was slow, and failed before the next attempt began
		c.pending.retry = r
		if c.pending.read != nil || !c.pending.same {
			return nil
		}
		c.paid = true // by the plan that this one replaces
		return c.schedule()
	}
	return c.again(a, v, r)
}

// again prepares the attempt that follows a, which came to v. If none may follow, it returns the failure that stands, unless
// a slower attempt may still answer.
func (c *call) again(a *attempt, v verdict, r *result) *result {
	if ok, why := c.pol.mayRepeat(c.made, v); !ok {
		return c.stand(a, why)
	}
	c.pending = pending{set: true, verdict: v, of: a, retry: r}
	if c.t.staticPlan(c.kind) {
		return c.choose(nil)
	}
	now := time.Now()
	cur, stale := c.host.list.get(now)
	if cur == nil {
		if c.pending.read = c.host.list.need(now, c.newRead); c.pending.read != nil {
			c.pending.until = now.Add(listTimeout + drainTime)
			return nil
		}
	}
	if stale {
		c.host.list.readAhead(now, c.newRead)
	}
	return c.choose(cur)
}

// elsewhere prepares the step that follows a 451: the region list is read anew, and an allowed region asked at once.
func (c *call) elsewhere(a *attempt, v verdict, r *result) *result {
	if c.trail.Pinned >= maxPinned {
		return c.stand(a, "the project was sent elsewhere too often")
	}
	c.sentAway = c.sentAway || a.origin == c.first
	c.pending = pending{set: true, verdict: v, of: a, retry: r}
	if c.t.staticPlan(c.kind) {
		return c.choose(nil)
	}
	now := time.Now()
	c.pending.read = c.host.list.needNewer(a.listSeq, now, c.newRead)
	if c.pending.read == nil {
		return c.choose(nil)
	}
	c.pending.until = now.Add(listTimeout + drainTime)
	return nil
}

// listed goes on when the list that the next attempt waited for is there, or will not come.
func (c *call) listed() *result {
	read := c.pending.read
	c.pending.read = nil
	if isDone(read.done) {
		return c.choose(read.listing)
	}
	return c.choose(nil)
}

// choose decides where the next attempt goes and when.
func (c *call) choose(list *listing) *result {
	p := &c.pending
	pinned := p.verdict.step == stepPinned
	var ok bool
	p.origin, p.same, ok = pickNext(c.planWith(list), c.tried, p.of.origin, !c.pol.rtc && !pinned)
	switch {
	case !ok && pinned:
		return c.stand(p.of, "no allowed region is left to try")
	case !ok:
		return c.stand(p.of, "no region is left to try")
	case pinned:
		p.until = time.Now()
		return nil
	}
	return c.schedule()
}

// schedule decides when the next attempt begins, and pays for it.
func (c *call) schedule() *result {
	p := &c.pending
	var retryAfter time.Duration
	var stated bool
	if p.retry != nil && p.retry.seen.status == http.StatusServiceUnavailable {
		retryAfter, stated = p.retry.retryAfter, p.retry.stated
	}
	wait, ok, why := c.pol.nextWait(c.made, p.same, retryAfter, stated, c.left(), rand.Float64())
	if !ok {
		return c.stand(p.of, why)
	}
	if !c.pol.rtc && !c.paid && !c.host.budget.take(time.Now()) {
		c.trail.BudgetSpent = true
		return c.stand(p.of, "the local retry budget is spent")
	}
	c.paid = false
	p.wait, p.until = wait, time.Now().Add(wait)
	return nil
}

// stand ends the call with the failure that stands, because no attempt may follow a. While another attempt is still running, its
// answer is waited for.
func (c *call) stand(a *attempt, why string) *result {
	c.pending = pending{}
	if a.record > 0 { // else it is only slow, and what it comes to is yet to be looked at
		c.stood = why
		c.trail.Attempts[a.record-1].Reason += "; " + why
	}
	if len(c.live) > 0 {
		return nil
	}
	return c.last
}

// tick does what is due at a moment that arm chose.
func (c *call) tick(now time.Time) *result {
	if p := &c.pending; p.set && !now.Before(p.until) {
		if p.read != nil {
			return c.listed()
		}
		via := c.t.carriers.of(p.origin)
		if p.same && p.verdict.broken {
			via = c.t.carriers.renew(p.origin, p.of.carrier)
		}
		c.launch(c.open(p.origin, p.wait, via))
		return nil
	}
	a := c.newest
	if !slices.Contains(c.live, a) {
		return nil
	}
	if at := c.gone(a); !at.IsZero() {
		if !now.Before(at) {
			c.giveUp(a)
		}
		return nil
	}
	if c.pol.rtc {
		return nil
	}
	age := now.Sub(a.info.Start)
	if age >= dialLimit && a.waiting() {
		a.end(errNoConnection, now)
		return nil
	}
	if a.patience == 0 || age < a.patience || a.slow {
		return nil
	}
	a.slow = true
	v := c.pol.classify(seen{failure: failedSlow})
	if ok, _ := c.pol.mayRepeat(c.made, v); !ok {
		return nil // nothing could follow: the attempt has all the time there is
	}
	if !c.pol.overtake {
		// The answer that it might still give is lost: only for an attempt that is sure to follow.
		if c.left() > c.mostBefore(now) && c.host.budget.take(now) {
			c.paid = true
			a.end(errSlow, now)
		}
		return nil
	}
	c.failed = append(c.failed, failedAt{a.origin, v.blame})
	return c.again(a, v, nil)
}

// mostBefore is the longest that may pass before an attempt that follows now: the backoff, and the read of a list if there is none.
func (c *call) mostBefore(now time.Time) time.Duration {
	most := backoffBase << c.made
	if !c.t.staticPlan(c.kind) {
		if cur, _ := c.host.list.get(now); cur == nil {
			most += listTimeout + drainTime
		}
	}
	return most
}

// arm sets the timer to the next moment at which something is due, and returns its channel.
func (c *call) arm() <-chan time.Time {
	next := c.due()
	switch {
	case next.IsZero():
		return nil
	case c.timer == nil:
		c.timer = time.NewTimer(time.Until(next))
	case !next.Equal(c.timerSet):
		c.timer.Reset(time.Until(next))
	}
	c.timerSet = next
	return c.timer.C
}

// due is the next moment at which there is something to do; zero if there is none.
func (c *call) due() time.Time {
	next := c.nextStep()
	if wall := c.wall(); !wall.IsZero() && (next.IsZero() || wall.Before(next)) {
		return wall
	}
	return next
}

func (c *call) nextStep() time.Time {
	if c.pending.set {
		return c.pending.until
	}
	a := c.newest
	if !slices.Contains(c.live, a) {
		return time.Time{}
	}
	if at := c.gone(a); !at.IsZero() || c.pol.rtc {
		return at
	}
	now := time.Now()
	dial := a.info.Start.Add(dialLimit)
	if now.Before(dial) {
		return dial
	}
	if a.patience > 0 && !a.slow {
		return a.info.Start.Add(a.patience)
	}
	return time.Time{}
}

// gone is when an attempt whose context was ended is not waited for any longer; zero if it was not ended.
func (c *call) gone(a *attempt) time.Time {
	switch {
	case c.inline:
	case c.pol.rtc:
		return a.info.Start.Add(c.pol.limit + drainTime)
	case a.endedFor != nil:
		return a.endedAt.Add(drainTime)
	}
	return time.Time{}
}

// wallSlack is how long a context may take to end at its deadline.
const wallSlack = 50 * time.Millisecond

// wall is when the call ends though its context does not, which is of the caller's own type then; zero if never.
func (c *call) wall() time.Time {
	if c.inline || c.deadline.IsZero() {
		return time.Time{}
	}
	return c.deadline.Add(wallSlack)
}
