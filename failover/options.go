package failover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
)

// Option sets up a Transport.
type Option func(*config) error

type config struct {
	rules      hostRules
	fixed      []origin
	off        bool
	noPrefetch bool
	wrap       func(http.RoundTripper) http.RoundTripper
	onAttempt  func(context.Context, Attempt)
	log        *slog.Logger
}

// Off turns failover off: each call gets one attempt. What remains is the reading of whole answers, the deadline, the request
// id and the step to an allowed region when a project is pinned (451), for which alone the region list is read.
func Off() Option {
	return func(c *config) error {
		c.off = true
		return nil
	}
}

// Hosts names hosts beside LiveKit Cloud's that get several attempts and may stand in a region list, for those who run
// servers of their own: "sfu.example.com", "10.1.2.3", "*.sfu.example.com" (any depth, not the domain itself). Case, port and
// trailing dot do not count. The default is none: a request to an unknown host is sent once.
//
// Such servers are not known to recognise request ids. A create (Keyed) is repeated on them only if it surely did not take
// effect.
func Hosts(patterns ...string) Option {
	return func(c *config) error {
		for _, p := range patterns {
			if err := c.rules.opted.add(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// Origins names the other regions of those who run their own: URLs such as "https://eu.sfu.example.com", tried in this order
// after the one that a call was made to. Their hosts count as named by Hosts. A call to a host named by Hosts or Origins goes
// to these and asks no region list, so name the host that calls are made to as well, by Hosts or here; [Transport.OriginsUnused]
// and lkrpc.New tell of one that is not named. Calls to LiveKit Cloud are not concerned. The default is none: the
// server's region list is read.
//
// The bearer token is sent to each of them, but for those with http when the call was made over https.
func Origins(urls ...string) Option {
	return func(c *config) error {
		for _, raw := range urls {
			o, err := parseOrigin(raw)
			if err != nil {
				return fmt.Errorf("failover: origin %q: %w; give a URL such as \"https://eu.sfu.example.com\"", Scrub(raw), err)
			}
			if err := c.rules.opted.add(o.host); err != nil {
				return err
			}
			if !contains(c.fixed, o) {
				c.fixed = append(c.fixed, o)
			}
		}
		return nil
	}
}

// CloudAPIHosts names hosts that behave like LiveKit Cloud's API hosts: one origin, no region list, and request ids that are
// recognised. cloud-api.livekit.io and its environments are known without it.
func CloudAPIHosts(hosts ...string) Option {
	return func(c *config) error {
		for _, h := range hosts {
			if err := c.rules.api.add(h); err != nil {
				return err
			}
		}
		return nil
	}
}

// WithoutPrefetch keeps the region list from being read ahead of need. By default it is read in the background after the
// first answered API call of a Cloud project host, and again at most once a minute when it is stale and calls are made, so
// that a region that is dead as a whole can be left.
func WithoutPrefetch() Option {
	return func(c *config) error {
		c.noPrefetch = true
		return nil
	}
}

// Wrap puts wrap around the transport of every attempt, for tracing, metrics or a proxy of one's own. It is called when a
// Transport is made, and again with new connections when those of an origin have proven broken. It must pass the request's
// context on; a middleware that sends a request several times by itself defeats the limits of this package. Of several the last
// is outermost. The default is none.
func Wrap(wrap func(http.RoundTripper) http.RoundTripper) Option {
	return func(c *config) error {
		if wrap == nil {
			return errors.New("failover: Wrap(nil): leave the option out to wrap nothing")
		}
		if inner := c.wrap; inner != nil {
			outer := wrap
			wrap = func(rt http.RoundTripper) http.RoundTripper { return outer(inner(rt)) }
		}
		c.wrap = wrap
		return nil
	}
}

// OnAttempt reports every attempt once when it is over, those that another overtook included, with the context of its call.
// It is called from any goroutine, possibly after the call has returned, and must neither block, since the call may wait for it,
// nor panic: on a goroutine that is not the caller's nobody could recover. Several are called in the order given. The default is
// none.
func OnAttempt(f func(context.Context, Attempt)) Option {
	return func(c *config) error {
		if f == nil {
			return errors.New("failover: OnAttempt(nil): leave the option out to observe nothing")
		}
		if first := c.onAttempt; first != nil {
			second := f
			f = func(ctx context.Context, a Attempt) { first(ctx, a); second(ctx, a) }
		}
		c.onAttempt = f
		return nil
	}
}

// Logger receives what happens below a call: each attempt that is over at debug level, each that begins after another at info
// level, each call that fails at warn level. No record holds a token. Of several the last counts. The default is silence.
func Logger(log *slog.Logger) Option {
	return func(c *config) error {
		if log == nil {
			return errors.New("failover: Logger(nil): leave the option out to log nothing")
		}
		c.log = log
		return nil
	}
}
