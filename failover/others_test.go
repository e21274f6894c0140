package failover_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lkrpc/lkrpc/failover"
)

// Transports of users do what ours does not.

// twice sends a request again, with a header more, if the answer to the first has a status.
func twice(on int) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			var body []byte
			if req.Body != nil {
				body, _ = io.ReadAll(req.Body)
			}
			send := func(again string) (*http.Response, error) {
				r := req.Clone(req.Context())
				r.Header.Set("X-Again", again)
				r.Body, r.GetBody = io.NopCloser(bytes.NewReader(body)), nil
				return next.RoundTrip(r)
			}
			resp, err := send("")
			if err != nil || resp.StatusCode != on {
				return resp, err
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return send("yes")
		})
	}
}

// A middleware that renews a credential sends a request twice over one HTTP/2 connection. That is not net/http's own sending again,
// which would prove that the server did not process the first.
func TestMiddlewareThatSendsTwice(t *testing.T) {
	for _, scheme := range []string{"http://", "https://"} {
		for _, host := range []string{project, own} {
			for _, under := range []bool{false, true} {
				t.Run(scheme+host, func(t *testing.T) {
					inWorld(t, func(w *world) {
						s := w.secure().serve(host, func(rw http.ResponseWriter, r *http.Request) {
							if r.Header.Get("X-Again") == "" {
								status(http.StatusUnauthorized)(rw, r)
							} else {
								ok(rw, r)
							}
						})
						rt := w.transport(failover.WithoutPrefetch(), failover.Wrap(twice(http.StatusUnauthorized)))
						if under {
							rt = w.over(twice(http.StatusUnauthorized)(w.client), failover.WithoutPrefetch())
							defer w.client.CloseIdleConnections()
						}
						for _, body := range []string{"request", ""} {
							r := w.send(context.Background(), rt, scheme+host, failover.Call{Repeat: failover.Safe}, body)
							if r.status != http.StatusOK || len(r.trail.Attempts) != 1 {
								t.Errorf("body %q: status %d, %v after %d requests", body, r.status, r.err, len(s.asked()))
							}
						}
					})
				})
			}
		}
	}
}

func TestMiddlewareThatSendsAFailureAgain(t *testing.T) {
	for _, body := range []string{"request", ""} {
		inWorld(t, func(w *world) {
			s := w.secure().serve(project, status(http.StatusInternalServerError))
			rt := w.transport(failover.WithoutPrefetch(), failover.Wrap(twice(http.StatusInternalServerError)))
			r := w.send(context.Background(), rt, "https://"+project, failover.Call{Repeat: failover.Once}, body)
			if r.err == nil && r.status != http.StatusInternalServerError || !r.trail.OutcomeUnknown || len(r.trail.Attempts) != 1 {
				t.Errorf("body %q: %d requests, outcome unknown %t: %v", body, len(s.asked()), r.trail.OutcomeUnknown, r.trail.Attempts)
			}
		})
	}
}

// Fakes leave out the body of an answer, for the region list too.
func TestAnswersWithoutABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paths := make(chan string, 10)
		rt, err := failover.New(roundTripper(func(r *http.Request) (*http.Response, error) {
			paths <- r.URL.Path
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {protobuf}}, Request: r}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		resp, err := rt.RoundTrip(request(project, strings.NewReader("x"), 1))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		synctest.Wait()
		if len(paths) != 2 {
			t.Errorf("%d requests, want one for the region list too", len(paths))
		}
	})
}

// A function given to Wrap may give nothing when it is asked again, for new connections.
func TestWrapThatGivesNothingLater(t *testing.T) {
	inWorld(t, func(w *world) {
		w.serve(cloud, first(broken, ok, ok))
		given := false
		rt := w.transport(failover.Wrap(func(next http.RoundTripper) http.RoundTripper {
			if given {
				return nil
			}
			given = true
			return next
		}))
		if r := w.post(context.Background(), rt, cloud, failover.Call{Repeat: failover.Safe}); r.status != http.StatusOK {
			t.Errorf("%v, status %d", r.err, r.status)
		}
	})
}

// broken takes a request and ends the connection.
func broken(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

type typedError struct{ text string }

func (e *typedError) Error() string { return e.text }

// An error that is a nil pointer, beside an answer, is an error that says nothing.
func TestTypedNilError(t *testing.T) {
	rt, err := failover.New(roundTripper(func(*http.Request) (*http.Response, error) {
		var e *typedError
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {protobuf}}, Body: http.NoBody}, e
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if resp, err := rt.RoundTrip(request(own, strings.NewReader("x"), 1)); err == nil || resp != nil {
		t.Errorf("%v, %v", resp, err)
	}
}

// A token that is opaque is known by the header that it is in, in any spelling.
func TestOpaqueTokenInErrors(t *testing.T) {
	const secret = "opaque-secret-token"
	rt, err := failover.New(roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("the proxy refuses " + secret)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	for _, header := range []http.Header{
		{"Authorization": {"Bearer " + secret}}, {"authorization": {"Bearer " + secret}}, {"Authorization": {"Bearer  " + secret}},
		{"Authorization": {"", "Bearer " + secret}}, {"AUTHORIZATION": {secret}},
	} {
		req := request(own, strings.NewReader("x"), 1)
		req.Header = header
		if _, err := rt.RoundTrip(req); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", header, err)
		}
	}
}
