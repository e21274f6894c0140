package cloudtest

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/twitchtv/twirp"
)

// Fault is what can be done to a request. The zero value does nothing.
type Fault struct {
	name  string
	serve func(*exchange)
}

// String names the fault, as Request.Fault does.
func (f Fault) String() string { return f.name }

func (f Fault) strike(ex *exchange) {
	if f.serve == nil {
		ex.send(ex.handle())
		return
	}
	f.serve(ex)
}

// After lets the request take effect before the fault strikes: After(Drop()) is a lost reply, where Drop() is a lost request.
func After(f Fault) Fault {
	return Fault{"after " + f.name, func(ex *exchange) {
		ex.handle()
		f.strike(ex)
	}}
}

// Status answers with a status from 200 to 999, a header and a body, in place of the host. header may be nil. A status that
// cannot be sent becomes 500 and a body that says so.
func Status(code int, header http.Header, body string) Fault {
	header = header.Clone()
	if code < 200 || code > 999 {
		code, body = http.StatusInternalServerError, "cloudtest: no answer can have the status "+strconv.Itoa(code)
	}
	return Fault{"status " + strconv.Itoa(code), func(ex *exchange) {
		rep := &reply{header: header.Clone(), status: code}
		if rep.header == nil {
			rep.header = http.Header{}
		}
		if body != "" && rep.header.Get("Content-Type") == "" {
			rep.header.Set("Content-Type", "text/plain; charset=utf-8")
		}
		rep.body.WriteString(body)
		ex.send(rep)
	}}
}

// TwirpError answers with a Twirp error and the HTTP status that belongs to its code, in place of the host.
func TwirpError(err twirp.Error) Fault {
	return Fault{"error " + string(err.Code()), func(ex *exchange) {
		rep := &reply{header: http.Header{}}
		twirp.WriteError(rep, err)
		ex.send(rep)
	}}
}

// Answer lets f answer in place of the host. The request's body is whole and in memory; its context ends when the client
// leaves or the Cloud is closed, and f must return then.
func Answer(f http.HandlerFunc) Fault {
	return Fault{"answer", func(ex *exchange) { f(&noting{ex.w, ex}, ex.r) }}
}

// Drop closes the connection without an answer. Other requests on an HTTP/2 connection are lost with it.
func Drop() Fault { return Fault{"drop", (*exchange).drop} }

// Reset ends the request without an answer. On HTTP/2 that is the stream alone, and other requests go on; on HTTP/1.1 it is the
// connection, as with Drop.
func Reset() Fault {
	return Fault{"reset", func(*exchange) { panic(http.ErrAbortHandler) }}
}

// Hang never answers. It goes on until the client leaves or the Cloud is closed.
func Hang() Fault {
	return Fault{"hang", func(ex *exchange) {
		<-ex.gone()
		panic(http.ErrAbortHandler)
	}}
}

// Delay waits before the host answers; with After, before its answer is sent. If the client leaves meanwhile, nothing follows.
// If the time of X-Twirp-Timeout-Ms is up first, the host answers "canceled", as LiveKit's servers do.
func Delay(d time.Duration) Fault {
	return Fault{"delay " + d.String(), func(ex *exchange) {
		limit, limited := twirpTimeout(ex.r)
		if limited && limit < d {
			if !ex.wait(limit) {
				panic(http.ErrAbortHandler)
			}
			TwirpError(twirp.NewError(twirp.Canceled, context.DeadlineExceeded.Error())).strike(ex)
			return
		}
		if !ex.wait(d) {
			panic(http.ErrAbortHandler)
		}
		ex.send(ex.handle())
	}}
}

// twirpTimeout reads how long the client says it waits.
func twirpTimeout(r *http.Request) (time.Duration, bool) {
	ms, err := strconv.ParseInt(r.Header.Get("X-Twirp-Timeout-Ms"), 10, 32)
	return time.Duration(ms) * time.Millisecond, err == nil && ms > 0
}

// Truncate sends the answer's head and the first half of its body, then breaks off. The request takes effect. A connection of a
// participant is taken and closed at once.
func Truncate() Fault {
	return Fault{"truncate", func(ex *exchange) {
		rep := ex.handle()
		if rep.upgrade != nil {
			ex.takeOver()
			ex.drop()
		}
		body := rep.body.Bytes()
		ex.begin(rep, len(body)+1)
		ex.w.Write(body[:len(body)/2])
		ex.flush()
		panic(http.ErrAbortHandler)
	}}
}

// Drip sends the answer's head at once and its body one byte at a time, each after a wait. The request takes effect. A body
// without bytes ends after one wait.
func Drip(every time.Duration) Fault {
	return Fault{"drip " + every.String(), func(ex *exchange) {
		rep := ex.handle()
		if rep.upgrade != nil {
			rep.upgrade(ex)
			return
		}
		body := rep.body.Bytes()
		ex.begin(rep, len(body))
		ex.flush()
		for i := range max(len(body), 1) {
			if !ex.wait(every) {
				panic(http.ErrAbortHandler)
			}
			ex.w.Write(body[i:min(i+1, len(body))])
			ex.flush()
		}
	}}
}

// Flood answers 200 with size bytes of JSON that say nothing, or with an endless stream of them if size is negative. On
// RegionList it is a list too large to be read. In a synctest bubble the clock stands still while somebody reads the stream.
func Flood(size int64) Fault {
	return Fault{"flood", func(ex *exchange) {
		ex.w.Header().Set("Content-Type", "application/json")
		ex.note(http.StatusOK)
		var source io.Reader = filler{}
		if size >= 0 {
			source = io.LimitReader(source, size)
		}
		if _, err := io.Copy(ex.w, source); err != nil {
			panic(http.ErrAbortHandler)
		}
	}}
}

// filler is endless white space, which JSON may begin with.
type filler struct{}

func (filler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// noting is a ResponseWriter that notes the status.
type noting struct {
	http.ResponseWriter
	ex *exchange
}

func (n *noting) WriteHeader(status int) {
	n.ex.note(status)
	n.ResponseWriter.WriteHeader(status)
}

func (n *noting) Write(p []byte) (int, error) {
	if n.ex.entry.Status == 0 {
		n.ex.note(http.StatusOK)
	}
	return n.ResponseWriter.Write(p)
}

// Unwrap lets an http.ResponseController reach the connection.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }
