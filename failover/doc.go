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
package failover
