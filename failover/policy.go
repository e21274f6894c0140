package failover

import "time"

const (
	maxAttempts   = 3                       // of an API call, the first one included
	leastTime     = 4900 * time.Millisecond // "at least 5 s": a context made with 5 s has a little less by the time it arrives
	attemptTime   = 10 * time.Second        // times the attempts: a call's time where the caller sets no deadline
	dialLimit     = 3 * time.Second         // an attempt without a connection by then counts as a failed dial
	safePatience  = 5 * time.Second
	keyedPatience = 10 * time.Second
	maxPinned     = 2 // steps after a 451, on top of the attempts

	maxRTCAttempts = 10
	rtcLimit       = 10 * time.Second // of one RTC attempt
)

// Repeat says when a request may be sent again. The zero value, Keyed, suits a request that nothing is known of.
type Repeat uint8

const (
	// Keyed requests create something. They are repeated on LiveKit Cloud hosts, which recognise the request id; on other
	// hosts only if the request surely did not take effect.
	Keyed Repeat = iota
	// Safe requests have the same effect once or several times. They are repeated on every host that gets several attempts.
	Safe
	// Once requests must not happen twice: a phone would ring again. They are repeated, on every host, only if the request
	// surely did not take effect.
	Once
)

// String returns "keyed", "safe" or "once". A value that is none of them counts as Once.
func (r Repeat) String() string {
	switch r {
	case Safe:
		return "safe"
	case Keyed:
		return "keyed"
	}
	return "once"
}

// policy is what one call may do: every choice that does not depend on how its attempts go.
type policy struct {
	attempts int // at most; 451 steps come on top
	repeat   Repeat
	dedups   bool          // the host recognises request ids
	pinnable bool          // a 451 means "elsewhere"
	rtc      bool          // attempts one after the other, each origin at most once, no wait between them
	patience time.Duration // an attempt without an answer by then is slow, see patienceWith; 0: it has all the time there is
	halves   bool          // patience is no more than half the time that is left when an attempt begins
	overtake bool          // a slow attempt runs on beside the next; otherwise it is cancelled first
	limit    time.Duration // an attempt is cut by then, whether or not another may follow; 0: none
}

// apiPolicy is the policy of an API call. left is the time to the caller's deadline, or negative without one.
func apiPolicy(kind hostKind, call *Call, off bool, left time.Duration) policy {
	p := policy{attempts: 1, repeat: min(call.Repeat, Once), dedups: kind.dedups(), pinnable: kind.listsRegions()}
	if !off && kind != foreignHost && (left < 0 || left >= leastTime) {
		p.attempts = maxAttempts
	}
	switch {
	case p.repeat == Safe:
		p.patience, p.overtake = safePatience, true
	case p.repeat == Keyed && p.dedups && call.Overtake:
		p.patience, p.halves, p.overtake = keyedPatience, true, true
	case p.repeat == Keyed && p.dedups:
		p.patience = keyedPatience
	}
	return p
}

// rtcPolicy is the policy of an RTC connection.
func rtcPolicy(kind hostKind, off bool) policy {
	p := policy{attempts: 1, repeat: Safe, rtc: true, limit: rtcLimit}
	if !off && kind.listsRegions() {
		p.attempts = maxRTCAttempts
	}
	return p
}

// patienceWith is the patience of an attempt that begins with so much time left.
func (p policy) patienceWith(left time.Duration) time.Duration {
	if p.halves {
		return max(min(p.patience, left/2), safePatience)
	}
	return p.patience
}

// callTime is how long an API call may take whose caller sets no deadline.
func (p policy) callTime(floor time.Duration) time.Duration {
	return max(time.Duration(p.attempts)*attemptTime, floor)
}

func (p policy) classify(s seen) verdict {
	if p.rtc {
		return classifyRTC(s)
	}
	return classifyAPI(s, p.pinnable)
}

// mayRepeat says whether attempt `made` (the first is 1), which came to v, may be followed by another; if not, why not.
func (p policy) mayRepeat(made int, v verdict) (ok bool, why string) {
	switch {
	case p.attempts == 1:
		return false, "this call gets one attempt"
	case made >= p.attempts:
		return false, "no attempt is left"
	case v.effect && p.repeat == Once:
		return false, "not repeated: it may have taken effect, and the call must not happen twice"
	case v.effect && p.repeat == Keyed && !p.dedups:
		return false, "not repeated: it may have taken effect, and this server is not known to recognise request ids"
	}
	return true, ""
}

// nextWait is the wait before the attempt that follows attempt `made`. same: it goes to the host that was just tried.
// left is the time to the call's deadline, or negative without one. If the wait cannot be afforded, ok is false.
func (p policy) nextWait(made int, same bool, retryAfter time.Duration, stated bool, left time.Duration, random float64) (
	wait time.Duration, ok bool, why string) {
	if p.rtc {
		return 0, true, ""
	}
	wait = backoff(made, random)
	if same && stated {
		if retryAfter > retryAfterMax {
			return 0, false, "the host asks to stay away for " + retryAfter.String()
		}
		wait = retryAfter
	}
	if left >= 0 && wait >= left {
		return 0, false, "no time is left for another attempt"
	}
	return wait, true, ""
}
