package cloudtest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Option sets up a Cloud.
type Option func(*config) error

type config struct {
	regions   []string
	inMemory  bool
	plainHTTP bool
	http1     bool
	noDedup   bool
}

// Regions names the regions, in the order of the region list; the first is the home of the project, demo.livekit.cloud, the
// others are demo.<name>.production.livekit.cloud. A name is made of a-z, 0-9 and "-". The default is chicago, frankfurt and
// tokyo.
func Regions(names ...string) Option {
	names = slices.Clone(names)
	return func(c *config) error {
		if len(names) == 0 {
			return errors.New("cloudtest: Regions names none; a Cloud has at least one")
		}
		for i, name := range names {
			if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				return fmt.Errorf("cloudtest: region %q: a name is made of a-z, 0-9 and \"-\"", name)
			}
			if slices.Contains(names[:i], name) {
				return fmt.Errorf("cloudtest: region %q is named twice", name)
			}
		}
		c.regions = names
		return nil
	}
}

// InMemory makes the connections of the Cloud out of memory instead of sockets, TLS and HTTP unchanged. Inside a synctest
// bubble nothing else works: a goroutine that waits for a socket keeps the bubble's clock from moving.
func InMemory() Option {
	return func(c *config) error {
		c.inMemory = true
		return nil
	}
}

// PlainHTTP makes URL http://demo.livekit.cloud, and lists the regions with http; port 80 of every host is open, beside 443.
func PlainHTTP() Option {
	return func(c *config) error {
		c.plainHTTP = true
		return nil
	}
}

// HTTP1 serves HTTP/1.1 only. The default is HTTP/2 as well for those who ask for it, as Transport does.
func HTTP1() Option {
	return func(c *config) error {
		c.http1 = true
		return nil
	}
}

// WithoutDedup makes the Cloud treat every request as a new one, as self-hosted servers do. By default a create that comes again
// with the same X-Livekit-Request-Id is answered like the first time, since the ids of what it creates derive from it.
func WithoutDedup() Option {
	return func(c *config) error {
		c.noDedup = true
		return nil
	}
}

// protocols are those that servers and transports speak over TLS.
func (c *config) protocols() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetHTTP2(!c.http1)
	return p
}

// nextProtos are the protocols that servers offer in the TLS handshake. A server that serves plain HTTP too has HTTP/2 only if it
// finds it named here, because net/http sets it up once, for whichever of the two is first.
func (c *config) nextProtos() []string {
	if c.http1 {
		return []string{"http/1.1"}
	}
	return []string{"h2", "http/1.1"}
}

// scheme is that of the Cloud's URLs.
func (c *config) scheme() string {
	if c.plainHTTP {
		return "http"
	}
	return "https"
}
