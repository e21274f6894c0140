// Package failover keeps calls to LiveKit alive: an http.RoundTripper that tries the same host again or another region, within
// the caller's deadline, with one X-Livekit-Request-Id on every attempt and at most three attempts.
//
// It needs nothing of the rest of lkrpc and stands under any http.Client:
//
//	t, err := failover.New(nil)
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	client := &http.Client{Transport: t}
//
// # Which calls are repeated
//
// Requests under /twirp get three attempts when the host is LiveKit's (a project host *.livekit.cloud or *.livekit.run, or
// cloud-api.livekit.io) or named by the option Hosts or Origins, and at least five seconds are left. Any other host, and a call
// with less time, gets one. A request without a known answer is repeated only if that is harmless: see Repeat.
//
// # What the death of a region does to the others
//
// BenchmarkOutage simulates 10,000 processes that make a call a second each. Their home region answers nothing for a second and is
// gone then, so that 10,000 calls fail at one moment; two other regions serve 6,000 requests a second each. What these are asked in
// the five seconds from the first silence on:
//
//	                    busiest 10 ms       in all    at the end
//	as it is               86,000/s         65,000      10,000/s
//	without jitter      1,008,000/s         68,000      10,700/s
//	without cool-down      88,000/s         73,000      14,000/s
//	without budget         88,000/s         65,000      10,000/s
//	without all three   1,008,000/s         72,000      14,000/s
//
// Jitter spreads the calls that failed together. The cool-down lets each process settle where it was served, and spares later calls
// the dead region. The budget belongs to one process, which at a call a second cannot exhaust it within two minutes. It is there
// for busy ones: 100 processes with ten calls a second each, whose other regions serve 600 requests a second in all, settle at
// 1,170 requests a second; without budget at 1,660.
package failover
