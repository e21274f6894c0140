package failover

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"runtime"
	"strings"
)

// net/http sends a request again by itself when it thinks that it may. An attempt is one request: what is here keeps it from
// becoming two, and reads off what net/http wanted whether the server processed the first.

// rewind is the attempt's Request.GetBody; nil over HTTP/2. There net/http wants to send a request again after REFUSED_STREAM and
// GOAWAY, which prove that the server did not process it, but after PROTOCOL_ERROR too, which proves nothing. Unable to get the
// body again, it does not, and its error says what it was. Over HTTP/1 only the function makes it take another connection when
// an idle one turns out to be dead before a byte is written. Which of the two it will be is known from the last connection: a
// wrong guess costs a proof or an attempt, no more.
func (a *attempt) rewind() func() (io.ReadCloser, error) {
	if a.origin.scheme == "http" && !a.carrier.h2c || a.origin.scheme == "https" && a.call.t.carriers.http1.Load() {
		return a.getBody
	}
	return nil
}

// refused reports whether an error of net/http says that the server did not process the request.
func refused(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if why, ok := strings.CutPrefix(fmt.Sprint(err), "http2: Transport: cannot retry err ["); ok {
			why, _, _ = strings.Cut(why, "]")
			return strings.HasSuffix(why, "; REFUSED_STREAM; received from peer") || strings.HasSuffix(why, " graceful shutdown GOAWAY")
		}
	}
	return false
}

// getBody gives net/http the body again while nothing was sent. After that an attempt would become two requests.
func (a *attempt) getBody() (io.ReadCloser, error) {
	// rewindBody follows only a connection on which not a byte was written. A middleware that retries by itself must not pass for
	// net/http.
	if !a.wrote.Load() || askedBy() == "net/http.rewindBody" && !replayedByNetHTTP(a.call.req.Method) {
		a.reach.CompareAndSwap(reachConnected, reachUnknown)
		a.wrote.Store(false)
		again := bytes.NewReader(a.call.body)
		a.again.Store(again)
		return io.NopCloser(again), nil
	}
	return nil, errUnclear
}

// sentAgain keeps a request without a body, which net/http sends again without asking for it, from going out on conn after it did on
// before. Where a user's middleware stands in between it may have been that, which is no matter for calls that may be repeated.
func (a *attempt) sentAgain(before, conn net.Conn) {
	switch http2 := a.carrier.speaksHTTP2(conn); {
	case http2 && a.direct() && before == conn: // REFUSED_STREAM: after GOAWAY and PROTOCOL_ERROR it takes another connection
		a.cancel(errResend)
	case http2 && (a.direct() || a.call.pol.repeat != Safe):
		a.cancel(errUnclear)
	case !http2 && a.call.pol.repeat != Safe && replayedByNetHTTP(a.call.req.Method):
		a.cancel(errUnclear)
		conn.Close() // over HTTP/1 net/http does not look at the context before it writes
	}
}

// askedBy names the function that called getBody.
func askedBy() string {
	var pc [1]uintptr
	if runtime.Callers(3, pc[:]) == 0 {
		return ""
	}
	frame, _ := runtime.CallersFrames(pc[:]).Next()
	return frame.Function
}

func replayedByNetHTTP(method string) bool {
	switch method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE":
		return true
	}
	return false
}

// discard keeps a request from being sent whose call has been reported as never sent.
func (a *attempt) discard(info httptrace.GotConnInfo) {
	a.body.Seek(0, io.SeekEnd) // net/http sends no request whose body is shorter than stated
	if again := a.again.Load(); again != nil {
		again.Seek(0, io.SeekEnd)
	}
	a.cancel(errLost) // over HTTP/2 net/http looks at the context before it writes, over HTTP/1 it does not
	if (len(a.call.body) == 0 || !a.direct()) && !a.carrier.speaksHTTP2(info.Conn) && (!info.Reused || info.WasIdle) {
		info.Conn.Close()
	}
}

func (c carrier) speaksHTTP2(conn net.Conn) bool {
	if tc, ok := conn.(*tls.Conn); ok {
		return tc.ConnectionState().NegotiatedProtocol == "h2"
	}
	return c.h2c
}
