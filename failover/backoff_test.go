package failover

import (
	"math"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		after  int
		random float64
		want   time.Duration
	}{
		{1, 0, 0},
		{1, 0.5, 100 * ms},
		{1, 1, 200 * ms},
		{2, 0, 0},
		{2, 0.25, 100 * ms},
		{2, 1, 400 * ms},
		{3, 1, 800 * ms},
		{4, 1, 1600 * ms},
		{5, 1, 3200 * ms},
		{6, 1, 5000 * ms}, // the cap
		{7, 0.5, 2500 * ms},
		{64, 1, 5000 * ms}, // where a shift would have left nothing
		{math.MaxInt, 1, 5000 * ms},
		{0, 1, 200 * ms},
		{-1, 1, 200 * ms},
		{math.MinInt, 1, 200 * ms},
		{1, math.NaN(), 200 * ms},
		{1, math.Inf(1), 200 * ms},
		{1, -1, 200 * ms},
		{1, 2, 200 * ms},
	} {
		if got := backoff(test.after, test.random); got != test.want {
			t.Errorf("backoff(%d, %v) = %v, want %v", test.after, test.random, got, test.want)
		}
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	const none = time.Duration(-1)
	for value, want := range map[string]time.Duration{
		"0":                                 0,
		"1":                                 time.Second,
		"120":                               2 * time.Minute,
		" 2 ":                               2 * time.Second,
		"007":                               7 * time.Second,
		"99999999999":                       longestRetryAfter,
		"99999999999999999999999999":        longestRetryAfter,
		"Wed, 04 Mar 2026 05:06:17 GMT":     10 * time.Second,
		"Wed, 04 Mar 2026 05:06:07 GMT":     0,
		"Wednesday, 04-Mar-26 05:07:07 GMT": time.Minute,
		"Wed Mar  4 05:06:08 2026":          time.Second,
		"Fri, 31 Dec 9999 23:59:59 GMT":     longestRetryAfter,

		"":                              none,
		" ":                             none,
		"-1":                            none,
		"+1":                            none,
		"1.5":                           none,
		"1e3":                           none,
		"0x10":                          none,
		"1_000":                         none,
		"2 s":                           none,
		"18700000000000000000A":         none,
		"2, 3":                          none,
		"soon":                          none,
		"\u0662":                        none, // a digit, but not of ASCII
		"Wed, 04 Mar 2026 05:06:06 GMT": none, // over
		"Wed, 04 Mar 2026 05:06:17 CET": none,
		"2026-03-04T05:06:17Z":          none,
		"04 Mar 2026":                   none,
	} {
		wait, ok := parseRetryAfter(value, now)
		if !ok && wait != 0 {
			t.Errorf("%q is no statement, and still says %v", value, wait)
		}
		if !ok {
			wait = none
		}
		if wait != want {
			t.Errorf("%q is %v, want %v", value, wait, want)
		}
	}
}
