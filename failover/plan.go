package failover

import (
	"slices"
	"time"
)

// start chooses where the first attempt goes.
func (c *call) start() {
	c.first = c.configured
	switch {
	case c.host == nil:
	case c.pol.rtc:
		if c.pol.attempts > 1 {
			c.first = c.host.preparedOrigin(c.configured)
		}
	default:
		c.host.budget.call()
		mayProbe := c.pol.repeat != Once && c.pol.attempts > 1 // a call that could not be repeated is not risked
		c.first, c.probe = c.host.health.start(c.configured, time.Now(), mayProbe)
	}
}

// staticPlan reports whether the origins of calls to a host are known without a region list.
func (t *Transport) staticPlan(kind hostKind) bool {
	return !kind.listsRegions() || t.fixedFor(kind)
}

// fixedFor reports whether option Origins names the other origins of a host.
func (t *Transport) fixedFor(kind hostKind) bool { return kind == optedHost && len(t.fixed) > 0 }

// planWith is the order of origins for the call, given the region list, if there is one.
func (c *call) planWith(list *listing) []origin {
	var others []origin
	switch {
	case c.t.fixedFor(c.kind):
		others = slices.DeleteFunc(slices.Clone(c.t.fixed), func(o origin) bool { return !c.t.rules.trusted(c.configured, o) })
	case list != nil:
		others = list.origins
	}
	return plan(c.configured, c.first, others, c.pol.rtc)
}

// plan orders the origins of a call: where it starts, then the others as listed. The configured origin comes before them,
// unless a call starts elsewhere because it failed lately: then it comes last. A connection starts elsewhere only because
// that was prepared, and has too few attempts to leave the given origin for last (soon).
func plan(configured, first origin, others []origin, soon bool) []origin {
	p := append(make([]origin, 0, len(others)+2), first)
	if soon && !first.same(configured) {
		p = append(p, configured)
	}
	for _, o := range others {
		if !o.same(configured) && !contains(p, o) {
			p = append(p, o)
		}
	}
	if !contains(p, configured) {
		p = append(p, configured)
	}
	return p
}
