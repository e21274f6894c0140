package lkrpc

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/lkrpc/lkrpc/failover"
)

// parseServerURL brings a server URL into the form that requests are made from: http or https, a host, a path without
// trailing slashes. Without a scheme it is https, but http for localhost and loopback addresses.
func parseServerURL(raw string) (*url.URL, error) {
	text := strings.TrimSpace(raw)
	if text == "" {
		return nil, fmt.Errorf("lkrpc: the server URL is empty; give one such as \"wss://my-project.livekit.cloud\"")
	}
	assumed := !strings.Contains(text, "://")
	if assumed && strings.Contains(text, ":/") {
		return nil, fmt.Errorf("lkrpc: server URL %q: its scheme is followed by one slash, not two", shown(raw))
	}
	if assumed {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	wrong := func(part string) error {
		return fmt.Errorf("lkrpc: server URL %q: %s; give one such as \"wss://my-project.livekit.cloud\"", shown(raw), part)
	}
	if err != nil {
		if strings.Contains(text, "@") {
			return nil, wrong("it cannot be read, and seems to carry user information, which LiveKit does not use")
		}
		return nil, wrong("it cannot be read: " + reasonOf(err))
	}
	switch u.Scheme {
	case "ws", "http":
		u.Scheme = "http"
	case "wss", "https":
		u.Scheme = "https"
	default:
		return nil, wrong(fmt.Sprintf("its scheme %q is none of ws, wss, http, https", u.Scheme))
	}
	switch {
	case u.User != nil:
		return nil, wrong("it carries user information, which LiveKit does not use")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, wrong("it carries a query")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return nil, wrong("it carries a fragment")
	case u.Hostname() == "":
		return nil, wrong("it has no host")
	}
	if assumed && isLoopback(u.Hostname()) {
		u.Scheme = "http"
	}
	u.Host = strings.ToLower(u.Host)
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// shown is a URL as it may stand in an error: without a password or a query, wherever slashes stand in them.
func shown(raw string) string {
	text := failover.Scrub(strings.TrimSpace(raw))
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
	} else {
		scheme += "://"
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = "***@" + rest[at+1:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 && i+1 < len(rest) {
		rest = rest[:i+1] + "***"
	}
	return scheme + rest
}

// reasonOf is the reason of a url.Parse error without the URL, which may hold a password.
func reasonOf(err error) string {
	if e, ok := err.(*url.Error); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// agentsURL is where the CloudAgent API of a project is: agents.livekit.cloud for my-project.livekit.cloud. ok is false if the
// host is no Cloud project's.
func agentsURL(server *url.URL) (u *url.URL, ok bool) {
	host := strings.TrimSuffix(server.Hostname(), ".")
	for _, domain := range [...]string{"livekit.cloud", "livekit.run"} {
		if strings.HasSuffix(host, "."+domain) {
			return &url.URL{Scheme: "https", Host: "agents." + domain}, true
		}
	}
	return nil, false
}
