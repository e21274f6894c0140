package cloudtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// maxBody is how much of a request's body is read; no API call comes near it.
const maxBody = 64 << 20

// exchange is one request on its way through a Host.
type exchange struct {
	host  *Host
	conn  *served
	w     http.ResponseWriter
	r     *http.Request // with its body in memory
	entry *Request
	rep   *reply // what the host answers, once it was asked to
}

type exchangeKey struct{}

// reply is an answer, held back until it is decided what becomes of it. It is the http.ResponseWriter of what answers.
type reply struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	upgrade func(*exchange) // takes the connection over; nil for ordinary answers
}

func (rep *reply) Header() http.Header { return rep.header }

func (rep *reply) WriteHeader(status int) {
	if rep.status == 0 {
		rep.status = status
	}
}

func (rep *reply) Write(p []byte) (int, error) {
	rep.WriteHeader(http.StatusOK)
	return rep.body.Write(p)
}

// handle is the host's http.Handler for whatever comes in.
func (h *Host) handle(w http.ResponseWriter, r *http.Request) {
	conn, _ := r.Context().Value(connKey{}).(*served)
	ex := &exchange{host: h, conn: conn, w: w, r: r, entry: h.entryOf(r)}
	rec := &h.cloud.record
	rec.arrive(ex.entry)
	defer rec.handled(ex.entry, conn)

	b := h.requestFault(r) // before the body is read: it may never come
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	rec.update(func() { ex.entry.Body = body })
	if err != nil {
		ex.drop() // the client is gone
	}
	ex.r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, ex))
	ex.r.Body = io.NopCloser(bytes.NewReader(body))
	fault := Fault{}
	if b != nil {
		fault = b.fault
		rec.update(func() { ex.entry.Fault = fault.name })
	}
	fault.strike(ex)
	if r.ProtoMajor == 2 {
		ex.flush() // so that the answer's last frame is an empty one, which is buffered and written after: see record.ended
	}
}

func (h *Host) entryOf(r *http.Request) *Request {
	q := &Request{
		Time: time.Now(), Host: h.name, Region: h.region, Proto: r.Proto, TLS: r.TLS != nil,
		Method: r.Method, Authority: r.Host, Path: r.URL.Path, RequestID: r.Header.Get(failover.RequestIDHeader),
		Token: tokenOf(r) != "", Header: r.Header.Clone(),
	}
	q.Header.Del("Authorization")
	if _, rpc, ok := strings.Cut(r.URL.Path, API); ok {
		q.RPC = strings.TrimPrefix(rpc, "livekit.")
	}
	return q
}

// handle lets the host answer, once, with every effect that the request has.
func (ex *exchange) handle() *reply {
	if ex.rep == nil {
		ex.rep = &reply{header: http.Header{}}
		ex.host.answer(ex.rep, ex.r)
	}
	return ex.rep
}

// send sends an answer.
func (ex *exchange) send(rep *reply) {
	if rep.upgrade != nil {
		rep.upgrade(ex)
		return
	}
	ex.begin(rep, rep.body.Len())
	ex.w.Write(rep.body.Bytes())
}

// begin sends the head of an answer whose body is said to have length bytes.
func (ex *exchange) begin(rep *reply, length int) {
	for name, values := range rep.header {
		ex.w.Header()[name] = values
	}
	status := rep.status
	if status == 0 {
		status = http.StatusOK
	}
	if status != http.StatusNoContent && status != http.StatusNotModified {
		ex.w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	ex.note(status)
	ex.w.WriteHeader(status)
}

func (ex *exchange) note(status int) {
	ex.host.cloud.record.update(func() { ex.entry.Status = status })
}

// flush sends what was written so far.
func (ex *exchange) flush() { http.NewResponseController(ex.w).Flush() }

// drop ends the connection without another byte of an answer. It does not return.
func (ex *exchange) drop() {
	if ex.conn != nil {
		ex.conn.Close()
	}
	panic(http.ErrAbortHandler)
}

// gone returns a channel that is closed when nobody waits for the answer any more: the client has left, or the Cloud is closed.
func (ex *exchange) gone() <-chan struct{} { return ex.r.Context().Done() }

// wait returns false if the client left before d had passed.
func (ex *exchange) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ex.gone():
		return false
	}
}
