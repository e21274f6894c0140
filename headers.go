package lkrpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/twitchtv/twirp"
)

// setHeader gives a request its headers: those of WithHeader, except where the context has the same name, and the token's. The
// request was made by the generated client, so the map is ours.
func (c *Client) setHeader(req *http.Request, authorization []string) {
	for name, values := range req.Header {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case name == "Accept" || name == "Content-Type" || name == "Twirp-Version": // the generated client's
		case ownHeader(canonical): // a caller's, in whatever spelling
			delete(req.Header, name)
		case canonical != name:
			delete(req.Header, name)
			req.Header[canonical] = slices.Concat(req.Header[canonical], values) // another spelling may be there
		}
	}
	for name, values := range c.header {
		if _, ok := req.Header[name]; !ok {
			req.Header[name] = slices.Clone(values)
		}
	}
	req.Header["Authorization"] = authorization
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header["User-Agent"] = userAgent
	}
}

var userAgent = []string{"lkrpc/" + Version}

// ownHeader tells the headers that a call's meaning rests on, and those that are about one connection (RFC 9110, 7.6.1), which a
// request that came in on another one may have: with Upgrade nothing can be sent over HTTP/2, and with Accept-Encoding net/http
// leaves the answer compressed. name is canonical.
func ownHeader(name string) bool {
	switch name {
	case "Authorization", "Accept", "Content-Type", "Content-Length", "Content-Encoding", "Twirp-Version", "X-Twirp-Timeout-Ms",
		failover.RequestIDHeader,
		"Accept-Encoding", "Connection", "Expect", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// checkHeader says why a header cannot be sent (RFC 9110, 5.1 and 5.5). It shows no value, which may be a secret.
func checkHeader(name string, values []string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) }) {
		return fmt.Errorf("%.100q is no name of a header", name)
	}
	for _, value := range values {
		if strings.ContainsFunc(value, isControl) {
			return fmt.Errorf("the value of %s holds a line break or another control character", name)
		}
	}
	return nil
}

// checkContextHeaders says which header of the context (twirp.WithHTTPRequestHeaders) cannot be sent. Those that the client sets
// itself are not sent either way.
func checkContextHeaders(ctx context.Context) error {
	header, _ := twirp.HTTPRequestHeaders(ctx)
	for name, values := range header {
		if ownHeader(http.CanonicalHeaderKey(name)) {
			continue
		}
		if err := checkHeader(name, values); err != nil {
			return fmt.Errorf("the context's headers: %w", err)
		}
	}
	return nil
}

func isTokenChar(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// isControl tells the characters that no value of a header has. A tab is allowed.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// checkToken says why what credentials gave cannot be the token of an Authorization header. It does not show it.
func checkToken(token string) error {
	if token == "" {
		return errors.New("the credentials gave an empty token")
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c >= 0x7f {
			return fmt.Errorf("the credentials gave a token that cannot stand in the Authorization header: byte %d of %d is a blank, a control"+
				" character or not ASCII; give the token alone, without \"Bearer \" and line breaks", i+1, len(token))
		}
	}
	return nil
}
