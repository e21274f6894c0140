package lkrpc

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/twitchtv/twirp"
)

// Option sets up a Client. What is wrong with one is an error of New.
type Option func(*config) error

type config struct {
	transport    http.RoundTripper
	failover     []failover.Option
	header       http.Header
	interceptors []twirp.Interceptor
}

// WithHTTPTransport sends all requests through rt, for a proxy, a private CA or a dialer of one's own. An *http.Transport is
// cloned, never changed; its zero fields get the settings that failover.New describes. The default is an *http.Transport with
// these settings and the proxy of the environment.
func WithHTTPTransport(rt http.RoundTripper) Option {
	return func(c *config) error {
		if rt == nil {
			return errors.New("lkrpc: WithHTTPTransport(nil): leave the option out for the default transport")
		}
		if c.transport != nil {
			return errors.New("lkrpc: WithHTTPTransport is given twice")
		}
		c.transport = rt
		return nil
	}
}

// WithTransportWrapper puts wrap around the transport of every attempt, for tracing and metrics: what it sees is each request
// as it goes over the wire, repeats included. Given several times, the last is outermost. The default is none. See failover.Wrap
// for what a wrapper must and must not do.
func WithTransportWrapper(wrap func(http.RoundTripper) http.RoundTripper) Option {
	return func(c *config) error {
		if wrap == nil {
			return errors.New("lkrpc: WithTransportWrapper(nil): leave the option out to wrap nothing")
		}
		c.failover = append(c.failover, failover.Wrap(wrap))
		return nil
	}
}

// WithFailover passes options on to the failover layer: failover.Off, Hosts, Origins, CloudAPIHosts, WithoutPrefetch, OnAttempt,
// Logger. What they are by default stands there. Given several times, they add up, except that the last Logger counts.
func WithFailover(opts ...failover.Option) Option {
	opts = slices.Clone(opts)
	return func(c *config) error {
		c.failover = append(c.failover, opts...)
		return nil
	}
}

// WithHeader sends these headers with every request, attempts and region lists alike. Names that the client sets itself
// (Authorization, Content-Type, Accept, ...), names that are about one connection (Upgrade, ...), names that no header has and
// values with control characters are an error. A context's headers (twirp.WithHTTPRequestHeaders) with the same name come in their
// place. The default is none.
func WithHeader(header http.Header) Option {
	header = header.Clone()
	return func(c *config) error {
		for name, values := range header {
			name = textproto.CanonicalMIMEHeaderKey(name)
			if ownHeader(name) {
				return fmt.Errorf("lkrpc: WithHeader: %s is set by the client itself", name)
			}
			if err := checkHeader(name, values); err != nil {
				return fmt.Errorf("lkrpc: WithHeader: %w", err)
			}
			if c.header == nil {
				c.header = http.Header{}
			}
			c.header[name] = append(c.header[name], values...)
		}
		return nil
	}
}

// WithInterceptors puts Twirp interceptors around every call, the first outermost. They see the caller's request and, on
// failure, *Error; what they change in a request is what is sent.
func WithInterceptors(interceptors ...twirp.Interceptor) Option {
	interceptors = slices.Clone(interceptors)
	return func(c *config) error {
		if i := slices.IndexFunc(interceptors, func(i twirp.Interceptor) bool { return i == nil }); i >= 0 {
			return fmt.Errorf("lkrpc: WithInterceptors: interceptor %d is nil", i+1)
		}
		c.interceptors = append(c.interceptors, interceptors...)
		return nil
	}
}
