package lkrpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/lkrpc/lkrpc/failover"
)

// parseServerURL brings a server URL into the form that requests are made from: http or https, a host, a path without
// trailing slashes. Without a scheme it is https, but http for localhost and loopback addresses.
func parseServerURL(raw string) (*url.URL, error) {
	text := strings.TrimSpace(raw)
	if text == "" {
		return nil, errors.New("lkrpc: the server URL is empty; give one such as \"wss://my-project.livekit.cloud\"")
	}
	wrong := func(part string) error {
		return fmt.Errorf("lkrpc: server URL %q: %s; give one such as \"wss://my-project.livekit.cloud\"", shown(raw), part)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return nil, wrong("it holds a blank or a character that cannot be seen")
	}
	assumed := !strings.Contains(text, "://")
	if assumed {
		if scheme, _, ok := strings.Cut(text, ":"); ok && isScheme(strings.ToLower(scheme)) || strings.Contains(text, ":/") {
			return nil, wrong("its scheme is not followed by \"://\"")
		}
		text = "https://" + text
	}
	_, host, _ := strings.Cut(text, "://")
	host, _, _ = strings.Cut(host, "/")
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() { // url.Parse takes the last part for a port
		return nil, wrong(fmt.Sprintf("an IPv6 address stands in brackets: [%s]", addr))
	}
	u, err := url.Parse(text)
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
	if reason := wrongHost(u.Host); reason != "" {
		return nil, wrong(reason)
	}
	if assumed && isLoopback(u.Hostname()) {
		u.Scheme = "http"
	}
	u.Host = strings.ToLower(u.Host)
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u, nil
}

func isScheme(text string) bool {
	return text == "ws" || text == "wss" || text == "http" || text == "https"
}

// wrongHost says why a host with or without a port, as url.Parse left it, is none that can be dialled, or "".
func wrongHost(host string) string {
	if name, port, ok := cutPort(host); ok {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Sprintf("its port %q is none of 1 to 65535", port)
		}
		host = name
	}
	if inside, ok := strings.CutPrefix(host, "["); ok {
		if addr, err := netip.ParseAddr(strings.TrimSuffix(inside, "]")); err != nil || !addr.Is6() {
			return fmt.Sprintf("%s is no IPv6 address", host)
		}
		return ""
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if _, err := strconv.Atoi(labels[len(labels)-1]); err == nil { // no domain ends in a number
		if _, err := netip.ParseAddr(host); err != nil {
			return fmt.Sprintf("its host %q is neither a name nor an IPv4 address", host)
		}
	}
	for _, label := range labels {
		switch i := strings.IndexFunc(label, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' }); {
		case label == "":
			return fmt.Sprintf("its host %q has nothing before, after or between dots", host)
		case i >= 0:
			return fmt.Sprintf("its host has %q, which no name has", label[i:])
		case len(label) > 63: // RFC 1035, 2.3.4
			return "its host has a label of more than 63 bytes"
		}
	}
	if len(host) > 254 { // likewise, with a dot at the end
		return "its host has more than 253 bytes"
	}
	return ""
}

// cutPort takes the port off a host. ok is false if there is none, not even a colon.
func cutPort(host string) (name, port string, ok bool) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || i < strings.LastIndexByte(host, ']') {
		return host, "", false
	}
	return host[:i], host[i+1:], true
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

// hostName is what hosts are compared by: a trailing dot makes no other host of a name, nor does a port.
func hostName(u *url.URL) string { return strings.TrimSuffix(u.Hostname(), ".") }

// agentsURL is where the CloudAgent API of a project is: agents.livekit.cloud for my-project.livekit.cloud. ok is false if the
// host is no Cloud project's.
func agentsURL(server *url.URL) (u *url.URL, ok bool) {
	host := hostName(server)
	for _, domain := range [...]string{"livekit.cloud", "livekit.run"} {
		if strings.HasSuffix(host, "."+domain) {
			return &url.URL{Scheme: "https", Host: "agents." + domain}, true
		}
	}
	return nil, false
}
