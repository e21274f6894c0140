package failover

import (
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	idlePerHost = 100              // connections; net/http's own 2 make a burst of callers dial anew each time
	idleTimeout = 45 * time.Second // below the minute after which common load balancers drop an idle connection
	pingTimeout = 2 * time.Second  // HTTP/2: silence before a ping, and the wait for its answer
	lingerTime  = time.Second      // after which net/http knows of the end of a stream
)

// carrier is what an attempt is sent through.
type carrier struct {
	rt http.RoundTripper
	tr *http.Transport // at the bottom of rt; nil if it is someone else's matter

	retired *atomic.Bool // nothing new is sent through it; nil without tr
	h2c     bool         // it speaks HTTP/2 without TLS
}

// retire closes the connections of a carrier that nothing new is sent through, those in use when that has ended. Closing one may
// take its time, which is no caller's.
func (c carrier) retire() {
	if c.tr != nil {
		c.retired.Store(true)
		go c.tr.CloseIdleConnections()
	}
}

// release says that a request is over. A retired carrier's connection is closed when it was the last one on it: net/http does that
// by itself with HTTP/1 only, and takes a moment to see that an HTTP/2 stream has ended.
func (c carrier) release() {
	if c.tr != nil && c.retired.Load() {
		go c.tr.CloseIdleConnections()
		time.AfterFunc(lingerTime, c.tr.CloseIdleConnections)
	}
}

// carriers gives each origin the carrier for its attempts. All origins share one until a connection of an origin proves
// broken; from then on that origin has a clone of its own, so that nothing is sent over what is dead but does not say so.
// Safe for concurrent use.
type carriers struct {
	base carrier
	wrap func(http.RoundTripper) http.RoundTripper // nil: nothing to wrap with

	http1 atomic.Bool // the last connection that was used does not speak HTTP/2

	mu     sync.Mutex // serialises writers of fresh
	fresh  atomic.Pointer[map[origin]carrier]
	closed bool
}

func newCarriers(next http.RoundTripper, wrap func(http.RoundTripper) http.RoundTripper) *carriers {
	c := &carriers{wrap: wrap}
	if next == nil {
		next = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dialLimit, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: dialLimit,
			ForceAttemptHTTP2:   true,
		}
	}
	if tr, ok := next.(*http.Transport); ok {
		c.base = c.carry(cloneTransport(tr))
	} else {
		c.base = carrier{rt: c.wrapped(next)}
	}
	return c
}

func (c *carriers) carry(tr *http.Transport) carrier {
	plain := tr.Protocols != nil && tr.Protocols.UnencryptedHTTP2() && !tr.Protocols.HTTP1() // as net/http decides
	return carrier{rt: c.wrapped(tr), tr: tr, retired: new(atomic.Bool), h2c: plain}
}

func (c *carriers) wrapped(rt http.RoundTripper) http.RoundTripper {
	if c.wrap == nil {
		return rt
	}
	return c.wrap(rt)
}

func (c *carriers) of(o origin) carrier {
	if fresh := c.fresh.Load(); fresh != nil {
		if got, ok := (*fresh)[o]; ok {
			return got
		}
	}
	return c.base
}

// renew gives the origin new connections, unless another call has done so since `used` was taken.
func (c *carriers) renew(o origin, used carrier) carrier {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.of(o); now.tr == nil || now.tr != used.tr {
		return now
	}
	fresh := c.carry(cloneTransport(c.base.tr))
	if fresh.rt == nil { // of a function given to Wrap that gave something the first time
		return c.of(o)
	}
	next := map[origin]carrier{}
	if old := c.fresh.Load(); old != nil {
		next = maps.Clone(*old)
		if dead, ok := next[o]; ok {
			dead.retire()
		}
	}
	fresh.retired.Store(c.closed)
	next[o] = fresh
	c.fresh.Store(&next)
	return fresh
}

// close retires every carrier of our own.
func (c *carriers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.base.retire()
	if fresh := c.fresh.Load(); fresh != nil {
		for _, f := range *fresh {
			f.retire()
		}
	}
}

// cloneTransport copies a transport with connections of its own and fills in what its owner left at zero.
func cloneTransport(tr *http.Transport) *http.Transport {
	c := tr.Clone() // and tr's own protocols are settled from here on
	if _, http2 := tr.TLSNextProto["h2"]; http2 {
		// An entry of the map belongs to the original's connections; without one net/http makes the clone's own. It would not
		// for a clone of a plain transport, whose TLS configuration looks like a user's by now.
		c.TLSNextProto, c.ForceAttemptHTTP2 = nil, true
	}
	if c.MaxIdleConnsPerHost == 0 {
		c.MaxIdleConnsPerHost = idlePerHost
	}
	if c.IdleConnTimeout == 0 {
		c.IdleConnTimeout = idleTimeout
	}
	if c.HTTP2 == nil {
		c.HTTP2 = &http.HTTP2Config{}
	}
	if c.HTTP2.SendPingTimeout == 0 {
		c.HTTP2.SendPingTimeout = pingTimeout
	}
	if c.HTTP2.PingTimeout == 0 {
		c.HTTP2.PingTimeout = pingTimeout
	}
	if c.HTTP2.WriteByteTimeout == 0 { // a peer that sends and does not read answers no ping, and is never silent
		c.HTTP2.WriteByteTimeout = 2 * pingTimeout
	}
	return c
}
