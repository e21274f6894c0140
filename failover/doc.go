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
//	as it is               84,000/s         65,000      10,000/s
//	without jitter      1,008,000/s         68,000      10,700/s
//	without cool-down      84,000/s         73,000      14,000/s
//	without budget         84,000/s         65,000      10,000/s
//	without all three   1,008,000/s         72,000      14,000/s
//
// Jitter spreads the calls that failed together. The cool-down lets each process settle where it was served, and spares later calls
// the dead region. The budget belongs to one process, which at a call a second cannot exhaust it within two minutes. It is there
// for busy ones: 100 processes with ten calls a second each, whose other regions serve 600 requests a second in all, settle at
// 1,170 requests a second; without budget at 1,660.
//
// # RTC connections
//
// A participant's signal connection, /rtc, is tried in up to ten regions, one after the other: the given URL, then each region
// of the server's list once, for 10 s each. What an attempt came to decides, by its status and never by a text:
//
//	101                           the connection stands
//	403, 451                      next region: the project is pinned, and may not use this one
//	408, 5xx                      next region: this one is ill
//	no connection, reset, 10 s    next region: this one cannot be reached
//	closed before the first message, or none in 10 s
//	                              next region, through Connect only: by path the 101 was the end
//	401                           the end: a token that is refused here is refused everywhere
//	400, 404, 429, other 4xx      the end: no region would answer otherwise, or asking more makes it worse
//	the caller's context is done  the end, at once
//
// When all fail, the last failure is what comes back; a 403 or 451, though, whatever the regions after it came to. A client that
// takes an http.Client gets this by path, with t as its Transport. So github.com/coder/websocket does:
//
//	func joinByPath(ctx context.Context, t *failover.Transport, serverURL, token string) (*websocket.Conn, error) {
//		conn, _, err := websocket.Dial(ctx, serverURL+"/rtc", &websocket.DialOptions{
//			HTTPClient: &http.Client{Transport: t},
//			HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
//		})
//		return conn, err
//	}
//
// Connect serves any library, and lets the dial function read the first message before the region counts as joined. What it
// dials with must not have t as its Transport: each attempt would try all regions by itself. github.com/coder/websocket, whose
// client is one with an http.Transport, or nil for net/http's default:
//
//	func joinWithCoder(ctx context.Context, t *failover.Transport, client *http.Client, serverURL, token string) (
//		conn *websocket.Conn, first []byte, err error) {
//		opts := &websocket.DialOptions{HTTPClient: client, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}}
//		err = t.Connect(ctx, serverURL, token, func(ctx context.Context, serverURL string) error {
//			c, resp, err := websocket.Dial(ctx, serverURL+"/rtc", opts)
//			if err != nil && resp != nil {
//				return &failover.StatusError{Code: resp.StatusCode, Err: err}
//			} else if err != nil {
//				return err
//			}
//			context.AfterFunc(ctx, func() { c.CloseNow() }) // should the attempt fail: else ctx never ends
//			conn = c
//			_, first, err = c.Read(ctx)
//			return err
//		})
//		return conn, first, err
//	}
//
// github.com/gorilla/websocket:
//
//	func joinWithGorilla(ctx context.Context, t *failover.Transport, dialer websocket.Dialer, serverURL, token string) (
//		conn *websocket.Conn, first []byte, err error) {
//		header := http.Header{"Authorization": {"Bearer " + token}}
//		err = t.Connect(ctx, serverURL, token, func(ctx context.Context, serverURL string) error {
//			d := dialer
//			d.NetDialContext = failover.DialUntil(ctx, dialer.NetDialContext) // gorilla does not read under ctx
//			c, resp, err := d.DialContext(ctx, serverURL+"/rtc", header)
//			if err != nil && resp != nil {
//				return &failover.StatusError{Code: resp.StatusCode, Err: err}
//			} else if err != nil {
//				return err
//			}
//			conn = c
//			_, first, err = c.ReadMessage()
//			return err
//		})
//		return conn, first, err
//	}
package failover
