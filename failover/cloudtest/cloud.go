package cloudtest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// The hosts of a Cloud beside its regions.
const (
	projectHost = "demo.livekit.cloud"
	apiHost     = "cloud-api.livekit.io"
	agentsHost  = "agents.livekit.cloud"
)

// Cloud is a LiveKit Cloud in this process, with one project. Safe for concurrent use.
type Cloud struct {
	URL    string // of the project, where its home region answers: "https://demo.livekit.cloud"
	Key    string // the API key of the project
	Secret string // and its secret

	config
	ca      *authority
	base    context.Context // of everything that is served; done when the Cloud is closed
	end     context.CancelFunc
	record  record
	state   *state
	api     http.Handler
	regions []*Host // in the order of the list
	serving sync.WaitGroup

	mu      sync.Mutex
	hosts   map[string]*Host
	strays  []string
	listing listing
}

// Start starts a Cloud: by default three regions, the first of them the home of the project, and the hosts of the Cloud API, all
// over TLS with HTTP/1.1 and HTTP/2 on the loopback interface. An error says what option is wrong, or that no port could be
// had.
func Start(opts ...Option) (*Cloud, error) {
	cfg := config{regions: []string{"chicago", "frankfurt", "tokyo"}}
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("cloudtest: option %d is nil", i+1)
		}
		if err := opt(&cfg); err != nil {
			return nil, err
		}
	}
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	c := &Cloud{Key: "APIcloudtest", Secret: "a-secret-that-protects-nothing-but-tests", config: cfg, ca: ca, hosts: make(map[string]*Host)}
	c.base, c.end = context.WithCancel(context.Background())
	c.record.init()
	c.listing.header = http.Header{"Cache-Control": {"max-age=300"}}
	c.state = newState(c)
	c.api = newAPI(c)
	if err := c.open(); err != nil {
		c.Close()
		return nil, err
	}
	c.URL = c.regions[0].URL()
	return c, nil
}

func (c *Cloud) open() error {
	for i, region := range c.config.regions {
		name := projectHost
		if i > 0 {
			name = "demo." + region + ".production.livekit.cloud"
		}
		h, err := c.add(name, region)
		if err != nil {
			return err
		}
		c.regions = append(c.regions, h)
	}
	for _, name := range [...]string{apiHost, agentsHost} {
		if _, err := c.add(name, ""); err != nil {
			return err
		}
	}
	return nil
}

// Region returns the region at a place of the region list; 0 is the home of the project. It returns nil if there is none.
func (c *Cloud) Region(i int) *Host {
	if i < 0 || i >= len(c.regions) {
		return nil
	}
	return c.regions[i]
}

// Regions returns all regions in the order of the region list.
func (c *Cloud) Regions() []*Host { return slices.Clone(c.regions) }

// API returns the host of the Cloud API, cloud-api.livekit.io. It serves the same project, and has no region list.
func (c *Cloud) API() *Host { return c.lookUp(apiHost) }

// Agents returns the host of the API for hosted agents, agents.livekit.cloud.
func (c *Cloud) Agents() *Host { return c.lookUp(agentsHost) }

// AddHost adds a host outside LiveKit's domains, such as "sfu.example.com" or an address. It serves the same project, and has
// no region list. It is also what shows whether a request went where it never should.
func (c *Cloud) AddHost(name string) (*Host, error) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if !isHost(name) {
		return nil, fmt.Errorf("cloudtest: host %q: give a name such as \"sfu.example.com\" or an address, without scheme, port or path", name)
	}
	return c.add(name, "")
}

// isHost reports whether a host can be called so: an address without a zone, or a name of labels as DNS has them (RFC 1035), which
// may have underscores too.
func isHost(name string) bool {
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Zone() == ""
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "-") != label ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return len(name) <= 253
}

// add makes a host and lets it serve.
func (c *Cloud) add(name, region string) (*Host, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.hosts[name] != nil:
		return nil, fmt.Errorf("cloudtest: host %q is there already", name)
	case c.base.Err() != nil:
		return nil, http.ErrServerClosed
	}
	h, err := newHost(c, name, region)
	if err != nil {
		return nil, err
	}
	c.hosts[name] = h
	h.serve()
	return h, nil
}

// Transport returns a new transport whose connections go to the Cloud and nowhere else: hand it to lkrpc.WithHTTPTransport,
// failover.New or an http.Client. It trusts the Cloud's certificates only, and uses no proxy.
func (c *Cloud) Transport() *http.Transport {
	return &http.Transport{DialContext: c.DialContext, TLSClientConfig: c.TLSConfig(), Protocols: c.protocols()}
}

// TLSConfig returns a new client configuration that trusts the Cloud's certificates.
func (c *Cloud) TLSConfig() *tls.Config { return &tls.Config{RootCAs: c.ca.pool} }

// Heal clears every fault of every host. What Pin and ListRegions did stays.
func (c *Cloud) Heal() {
	for _, h := range c.allHosts() {
		h.Heal()
	}
}

// Close ends the Cloud: listeners and connections are closed, requests that hang and dials that wait end. When it returns, no
// request is handled any more. Closing twice is harmless. It returns nil.
func (c *Cloud) Close() error {
	c.end()
	for _, h := range c.allHosts() {
		h.close()
	}
	c.record.close()
	c.serving.Wait()
	return nil
}

func (c *Cloud) allHosts() []*Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*Host, 0, len(c.hosts))
	for _, h := range c.hosts {
		all = append(all, h)
	}
	return all
}
