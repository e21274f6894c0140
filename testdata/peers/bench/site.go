package bench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
)

// Site is how a client finds the fake cloud and what it needs there.
type Site struct {
	Hosts map[Proto]map[string]string // the loopback address of each host
	CA    []byte                      // PEM

	Key, Secret string
	Room, Token string // a room, and a token for it
}

// DialContext returns a dialer that knows the hosts of the site, and no other name.
func (s Site) DialContext(p Proto) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer, hosts := &net.Dialer{}, s.Hosts[p]
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		name, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		to, ok := hosts[name]
		if !ok {
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		}
		return dialer.DialContext(ctx, network, to)
	}
}

// TLSConfig trusts the site's authority only.
func (s Site) TLSConfig() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CA)
	return &tls.Config{RootCAs: pool}
}

// Lead makes a transport dial the site. The rest of its settings stays the client's own.
func (s Site) Lead(p Proto, tr *http.Transport) {
	tr.Proxy, tr.DialContext, tr.TLSClientConfig = nil, s.DialContext(p), s.TLSConfig()
}
