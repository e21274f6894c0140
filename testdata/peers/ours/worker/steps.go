package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/lkrpc/lkrpc/testdata/peers/bench"
)

// step is what stands between the bare client and its transport: little code for what lkrpc must do for a healthy call too, each step
// with all before it. It is no failover: it shows what part of lkrpc's cost that alone comes to.
type step int

const (
	stepBody      step = iota + 1 // the request's body can be sent again, and the answer is read whole
	stepContext                   // an attempt can be ended alone
	stepTrace                     // what was sent is known
	stepHeaders                   // the request id and the time left
	stepGoroutine                 // the deadline holds wherever net/http may be
	stepTimer                     // a slow attempt is noticed
)

// newSteps returns the bare client with the steps up to one.
func newSteps(last step) bench.Factory {
	return func(t bench.Target) (*bench.Client, error) {
		return bareOver(t, func(tr http.RoundTripper) http.RoundTripper { return &stepper{last, tr} })
	}
}

type stepper struct {
	last step
	next http.RoundTripper
}

func (s *stepper) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	ctx := req.Context()
	if s.last >= stepContext {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
	}
	if s.last >= stepTrace {
		ctx = httptrace.WithClientTrace(ctx, newTrace())
	}
	out := req.WithContext(ctx)
	if s.last >= stepHeaders {
		out.Header = req.Header.Clone()
		out.Header["X-Livekit-Request-Id"] = []string{uuid.NewString()}
		if deadline, ok := ctx.Deadline(); ok {
			out.Header["X-Twirp-Timeout-Ms"] = []string{strconv.FormatInt(time.Until(deadline).Milliseconds()+250, 10)}
		}
	}
	out.Body, out.GetBody = io.NopCloser(bytes.NewReader(body)), nil
	if s.last < stepGoroutine {
		a := s.try(out)
		return a.resp, a.err
	}
	answers := make(chan answer, 1)
	go func() { answers <- s.try(out) }()
	var due <-chan time.Time
	if s.last >= stepTimer {
		timer := time.NewTimer(3 * time.Second)
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case a := <-answers:
			return a.resp, a.err
		case <-due: // lkrpc would look at the attempt here
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
}

type answer struct {
	resp *http.Response
	err  error
}

// try sends a request and reads the answer.
func (s *stepper) try(req *http.Request) answer {
	resp, err := s.next.RoundTrip(req)
	if err != nil {
		return answer{err: err}
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return answer{err: err}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return answer{resp: resp}
}

// seen is what a trace saw.
type seen struct{ waits, connected, wrote atomic.Bool } // the hooks run on goroutines of net/http's

func newTrace() *httptrace.ClientTrace {
	s := &seen{}
	return &httptrace.ClientTrace{
		GetConn:      func(string) { s.waits.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { s.connected.Store(true) },
		WroteHeaders: func() { s.wrote.Store(true) },
	}
}
