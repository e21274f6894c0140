package rttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The contract has to see every way to break it: here are RoundTrippers that keep it but for one thing.

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// breakage makes one out of one that keeps the contract.
type breakage struct {
	name string
	make func(next http.RoundTripper) http.RoundTripper
}

// touching changes the caller's request before it is sent.
func touching(name string, touch func(*http.Request)) breakage {
	return breakage{name, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL != nil && r.Header != nil {
				touch(r)
			}
			return next.RoundTrip(r)
		})
	}}
}

// sending sends another request than the caller's, which stays as it is.
func sending(name string, change func(*http.Request) *http.Request) breakage {
	return breakage{name, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			other := *r
			resp, err := next.RoundTrip(change(&other))
			if resp != nil {
				resp.Request = r
			}
			return resp, err
		})
	}}
}

// returning returns something else than what came.
func returning(name string, change func(r *http.Request, resp *http.Response, err error) (*http.Response, error)) breakage {
	return breakage{name, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			return change(r, resp, err)
		})
	}}
}

// leaving closes the body only if a condition holds.
func leaving(name string, open func(r *http.Request, resp *http.Response, err error) bool) breakage {
	return breakage{name, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Body == nil {
				return next.RoundTrip(r)
			}
			other := *r
			other.Body = io.NopCloser(r.Body)
			resp, err := next.RoundTrip(&other)
			if resp != nil {
				resp.Request = r
			}
			if !open(r, resp, err) {
				r.Body.Close()
			}
			return resp, err
		})
	}}
}

// answer is a response that nobody gave.
func answer(r *http.Request, code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

// reader changes the reading or the closing of an answer's body.
type reader struct {
	io.ReadCloser
	read  func(int, error) (int, error)
	close func(n int) error
	n     int
}

func (b *reader) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read != nil {
		return b.read(n, err)
	}
	return n, err
}

func (b *reader) Close() error {
	err := b.ReadCloser.Close()
	if b.n++; b.close != nil {
		return b.close(b.n)
	}
	return err
}

// unendingly reads requests and answers without the caller's context, once begun.
func unendingly(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		stop := context.AfterFunc(r.Context(), cancel)
		resp, err := next.RoundTrip(r.WithContext(ctx))
		stop() // too early: the body is still to be read
		if resp != nil {
			resp.Request = r
		}
		return resp, err
	})
}

var breakages = map[string][]breakage{
	ruleUnmodified: {
		touching("sets a header", func(r *http.Request) { r.Header.Set("X-Mine", "1") }),
		touching("appends to a header", func(r *http.Request) { r.Header.Add("X-Two", "three") }),
		touching("writes a value in place", func(r *http.Request) { r.Header["X-Two"][0] = "other" }),
		touching("writes beyond a value", func(r *http.Request) { _ = append(r.Header[spare], "more") }),
		touching("removes a header", func(r *http.Request) { r.Header.Del("Authorization") }),
		touching("another header map", func(r *http.Request) { r.Header = r.Header.Clone() }),
		touching("changes the URL", func(r *http.Request) { r.URL.RawQuery = "" }),
		touching("another URL", func(r *http.Request) { u := *r.URL; r.URL = &u }),
		touching("sets the host", func(r *http.Request) { r.Host = "example.com" }),
		touching("wraps the body", func(r *http.Request) {
			if r.Body != nil {
				r.Body = io.NopCloser(r.Body)
			}
		}),
		touching("sets the length", func(r *http.Request) { r.ContentLength++ }),
		touching("takes GetBody", func(r *http.Request) { r.GetBody = nil }),
		touching("changes the trailer", func(r *http.Request) {
			if r.Trailer != nil {
				r.Trailer.Set("X-Trailer", "other")
			}
		}),
		touching("another context", func(r *http.Request) { *r = *r.WithContext(context.WithoutCancel(r.Context())) }),
		touching("closes the connection", func(r *http.Request) { r.Close = true }),
		{"sets a header and takes it back", func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL == nil || r.Header == nil {
					return next.RoundTrip(r)
				}
				old := *r.URL
				r.URL.Path = "/other"
				defer func() { *r.URL = old }()
				return next.RoundTrip(r)
			})
		}},
	},
	ruleClosed: {
		leaving("left open", func(*http.Request, *http.Response, error) bool { return true }),
		leaving("left open after an answer", func(_ *http.Request, resp *http.Response, _ error) bool { return resp != nil }),
		leaving("left open after an early answer", func(_ *http.Request, resp *http.Response, _ error) bool {
			return resp != nil && resp.StatusCode == 404
		}),
		leaving("left open without a URL", func(r *http.Request, _ *http.Response, _ error) bool { return r.URL == nil }),
		leaving("left open without a header", func(r *http.Request, _ *http.Response, _ error) bool { return r.Header == nil }),
		leaving("left open for another scheme", func(r *http.Request, _ *http.Response, _ error) bool {
			return r.URL != nil && r.URL.Scheme == "gopher"
		}),
		leaving("left open after a failed dial", func(_ *http.Request, _ *http.Response, err error) bool {
			return err != nil && strings.Contains(err.Error(), "dial tcp")
		}),
		leaving("left open when cancelled", func(_ *http.Request, _ *http.Response, err error) bool { return errors.Is(err, context.Canceled) }),
		leaving("left open when unreadable", func(_ *http.Request, _ *http.Response, err error) bool { return errors.Is(err, errBody) }),
		leaving("left open when closed", func(_ *http.Request, _ *http.Response, err error) bool { return err == errClosed }),
	},
	ruleXor: {
		returning("both", func(_ *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if resp != nil && resp.StatusCode >= 400 {
				err = errors.New(resp.Status)
			}
			return resp, err
		}),
		returning("neither", func(_ *http.Request, resp *http.Response, err error) (*http.Response, error) { return resp, nil }),
	},
	ruleRequest: {
		returning("none", func(_ *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if resp != nil {
				resp.Request = nil
			}
			return resp, err
		}),
		returning("another", func(r *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if resp != nil {
				resp.Request = r.Clone(r.Context())
				resp.Request.URL.Host = "one.example.com"
			}
			return resp, err
		}),
	},
	ruleBody: {
		returning("none where nothing is to be read", func(_ *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if resp != nil && resp.StatusCode == 204 {
				resp.Body = nil
			}
			return resp, err
		}),
		returning("can be closed once", func(_ *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if resp != nil {
				resp.Body = &reader{ReadCloser: resp.Body, close: func(n int) error {
					if n > 1 {
						return errors.New("closed already")
					}
					return nil
				}}
			}
			return resp, err
		}),
	},
	ruleAnswer: {
		returning("a status is an error", func(_ *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if resp != nil && resp.StatusCode >= 500 {
				return nil, errors.New(resp.Status)
			}
			return resp, err
		}),
		returning("the body is not there", func(_ *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if resp != nil {
				resp.Body = http.NoBody
			}
			return resp, err
		}),
		sending("one value of two", func(r *http.Request) *http.Request {
			r.Header = r.Header.Clone()
			if r.Header != nil {
				r.Header.Set("X-Two", "one")
			}
			return r
		}),
		sending("no body", func(r *http.Request) *http.Request {
			if r.Body != nil {
				r.Body.Close()
				r.Body, r.ContentLength = http.NoBody, 0
			}
			return r
		}),
		returning("panics", func(_ *http.Request, resp *http.Response, _ error) (*http.Response, error) { panic(resp.StatusCode) }),
	},
	ruleContext: {
		sending("no end", func(r *http.Request) *http.Request { return r.WithContext(context.WithoutCancel(r.Context())) }),
		{"no end while reading", unendingly},
		returning("another error", func(_ *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if err != nil {
				err = fmt.Errorf("%v", err)
			}
			return resp, err
		}),
		sending("sent although cancelled", func(r *http.Request) *http.Request {
			if r.Context().Err() != nil {
				return r.WithContext(context.Background())
			}
			return r
		}),
	},
	ruleUnsendable: {
		returning("an answer that nobody gave", func(r *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if err != nil {
				return answer(r, 503, ""), nil
			}
			return resp, nil
		}),
		sending("what is wrong is left out", func(r *http.Request) *http.Request {
			r.Header = r.Header.Clone()
			delete(r.Header, "X-Two")
			return r
		}),
	},
	ruleReadError: {
		returning("another error", func(_ *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if errors.Is(err, errBody) {
				err = io.ErrUnexpectedEOF
			}
			return resp, err
		}),
	},
	ruleLength: {
		sending("whatever is there is sent", func(r *http.Request) *http.Request {
			if r.Body != nil {
				r.ContentLength = -1
			}
			return r
		}),
	},
	ruleBroken: {
		returning("what came is enough", func(_ *http.Request, resp *http.Response, err error) (*http.Response, error) {
			if resp != nil {
				resp.Body = &reader{ReadCloser: resp.Body, read: func(n int, err error) (int, error) {
					if err != nil {
						err = io.EOF
					}
					return n, err
				}}
			}
			return resp, err
		}),
	},
	ruleTwice: {
		{"an error", func(next http.RoundTripper) http.RoundTripper { return &touchy{RoundTripper: next} }},
	},
	ruleConcurrent: {
		{"one at a time", func(next http.RoundTripper) http.RoundTripper {
			var busy atomic.Bool
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if !busy.CompareAndSwap(false, true) {
					if r.Body != nil {
						r.Body.Close()
					}
					return nil, errors.New("busy")
				}
				defer busy.Store(false)
				return next.RoundTrip(r)
			})
		}},
		{"answers get mixed up", func(next http.RoundTripper) http.RoundTripper {
			var mu sync.Mutex
			var last string
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				resp, err := next.RoundTrip(r)
				if resp == nil || resp.StatusCode != 200 {
					return resp, err
				}
				body, err := io.ReadAll(resp.Body)
				mu.Lock()
				defer mu.Unlock()
				if last == "" || err != nil {
					last = string(body)
				}
				resp.Body = &reader{ReadCloser: io.NopCloser(strings.NewReader(last)), read: func(n int, end error) (int, error) {
					if err != nil {
						return n, err
					}
					return n, end
				}}
				return resp, nil
			})
		}},
	},
}

var errClosed = errors.New("closed")

// closable is a RoundTripper with an end.
type closable struct {
	http.RoundTripper
	closed atomic.Bool
}

func (c *closable) Close() error {
	c.closed.Store(true)
	return nil
}

func (c *closable) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.closed.Load() {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, errClosed
	}
	return c.RoundTripper.RoundTrip(r)
}

// touchy is one that cannot be closed twice.
type touchy struct {
	http.RoundTripper
	closed atomic.Bool
}

func (c *touchy) Close() error {
	if c.closed.Swap(true) {
		return errClosed
	}
	return nil
}

// notes is a test that keeps what is reported.
type notes struct {
	testing.TB
	mu  sync.Mutex
	all []string
}

func (n *notes) Helper() {}

func (n *notes) Errorf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, fmt.Sprintf(format, args...))
}

func (n *notes) about(rule string) bool {
	for _, note := range n.all {
		if strings.HasPrefix(note, rule) {
			return true
		}
	}
	return false
}

// reports runs the contract with a breakage until it is reported as what it is, and returns all that was.
func reports(t *testing.T, rule string, b breakage) *notes {
	got := &notes{TB: t}
	p := &probe{got, func(t testing.TB, handler http.Handler) Site {
		s := overTLS(false)(t, handler)
		whole := &closable{RoundTripper: s.RoundTripper}
		s.RoundTripper, s.Close = b.make(whole), whole.Close
		if end, ok := s.RoundTripper.(io.Closer); ok {
			s.Close = end.Close
		}
		return s
	}, 100 * time.Millisecond}
	for _, w := range ways {
		if p.travel(w); got.about(rule) {
			return got
		}
	}
	p.crowd()
	return got
}

func TestBreakagesAreReported(t *testing.T) {
	for rule, all := range breakages {
		for _, b := range all {
			t.Run(rule+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				if got := reports(t, rule, b); !got.about(rule) {
					t.Errorf("not reported; what was:\n%s", strings.Join(got.all, "\n"))
				}
			})
		}
	}
}
