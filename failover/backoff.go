package failover

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	backoffBase   = 200 * time.Millisecond // the widest wait before the second attempt; doubles with each attempt after it
	backoffCap    = 5 * time.Second        // wider than any attempt of today's policies reaches
	retryAfterMax = 2 * time.Second        // a longer Retry-After is the caller's to wait for
)

// backoff returns the wait before the attempt that follows attempt n (the first is 1): uniform in [0, 200 ms · 2^(n-1)],
// "full jitter", so that callers that failed together do not come back together. random is uniform in [0, 1).
func backoff(n int, random float64) time.Duration {
	width := backoffCap
	if shift := max(n, 1) - 1; shift < 5 {
		width = min(backoffBase<<shift, backoffCap)
	}
	if !(random >= 0 && random <= 1) { // also NaN
		random = 1
	}
	return time.Duration(random * float64(width))
}

// longestRetryAfter is what a longer Retry-After counts as. It keeps sums of times far from overflow.
const longestRetryAfter = 365 * 24 * time.Hour

// parseRetryAfter reads a Retry-After value, seconds or an HTTP date, as the time from now on.
// Garbage and a date in the past are no statement: ok is false.
func parseRetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if wait, ok := parseSeconds(value, longestRetryAfter); ok {
		return wait, true
	}
	at, err := http.ParseTime(value)
	if err != nil || at.Before(now) {
		return 0, false
	}
	return min(at.Sub(now), longestRetryAfter), true
}

// parseSeconds reads whole seconds in digits; more than most count as most.
func parseSeconds(digits string, most time.Duration) (d time.Duration, ok bool) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	seconds, _ := strconv.ParseUint(digits, 10, 64) // the greatest number for one that is too great
	return time.Duration(min(seconds, uint64(most/time.Second))) * time.Second, true
}
