package failover

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// hostKind says what a host is to the attempts policy.
type hostKind uint8

const (
	foreignHost  hostKind = iota // one attempt, no region list
	projectHost                  // a LiveKit Cloud project: regions, dedup by request id
	cloudAPIHost                 // a LiveKit Cloud API: one origin, dedup by request id
	optedHost                    // named by Hosts or Origins: regions, no dedup known
)

// dedups reports whether servers of this kind recognise a request id that they have seen, so that a create can be repeated.
func (k hostKind) dedups() bool { return k == projectHost || k == cloudAPIHost }

// listsRegions reports whether a host of this kind may be asked for /settings/regions.
func (k hostKind) listsRegions() bool { return k == projectHost || k == optedHost }

// hostName reduces the host part of a URL to what hosts are compared by: lower case, no port, no trailing dot, no brackets.
// It reads the port as net/http does, so that what is compared is where a request would go.
func hostName(hostport string) string {
	host := hostport
	if strings.HasPrefix(host, "[") || strings.Count(host, ":") < 2 { // else an IPv6 address without brackets, in a pattern
		host = (&url.URL{Host: hostport}).Hostname()
	}
	return lowerASCII(strings.TrimSuffix(host, "."))
}

// lowerASCII lowers A to Z alone: lower-casing by Unicode makes a plain k of the Kelvin sign, and LiveKit's name of a look-alike.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// cloudKind tells LiveKit Cloud's own hosts by name. host is in the form of hostName.
func cloudKind(host string) hostKind {
	for _, suffix := range [...]string{".livekit.cloud", ".livekit.run"} {
		if name, ok := strings.CutSuffix(host, suffix); ok && validLabels(name) {
			return projectHost
		}
	}
	if host == "cloud-api.livekit.io" {
		return cloudAPIHost
	}
	if env, ok := strings.CutPrefix(host, "cloud-api."); ok {
		if env, ok = strings.CutSuffix(env, ".livekit.io"); ok && validLabels(env) && !strings.Contains(env, ".") {
			return cloudAPIHost
		}
	}
	return foreignHost
}

// validLabels reports whether s is one or more non-empty labels of the characters that host names are made of, so that
// "evil.example/.livekit.cloud" and the like are no project host.
func validLabels(s string) bool {
	empty := true
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.':
			if empty {
				return false
			}
			empty = true
			continue
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
		empty = false
	}
	return !empty
}

// hostSet is what Hosts, Origins and CloudAPIHosts named.
type hostSet struct {
	exact    map[string]bool
	suffixes []string // each with its leading dot
}

func (s *hostSet) has(host string) bool {
	if s.exact[host] {
		return true
	}
	for _, suffix := range s.suffixes {
		if name, ok := strings.CutSuffix(host, suffix); ok && validLabels(name) {
			return true
		}
	}
	return false
}

// add takes a host name, an address or "*.domain"; a port is ignored.
func (s *hostSet) add(pattern string) error {
	if strings.ContainsAny(pattern, "/@?# \t\r\n") {
		return fmt.Errorf("failover: host pattern %q: give a host name such as \"sfu.example.com\" or \"*.example.com\", without scheme"+
			" or path", Scrub(pattern))
	}
	host := hostName(pattern)
	if domain, ok := strings.CutPrefix(host, "*."); ok {
		if !validLabels(domain) {
			return fmt.Errorf("failover: host pattern %q: a domain must follow \"*.\"", pattern)
		}
		s.suffixes = append(s.suffixes, "."+domain)
		return nil
	}
	if _, err := netip.ParseAddr(host); err != nil && !validLabels(host) {
		return fmt.Errorf("failover: host pattern %q is no host name; a pattern is a host name, an address or \"*.\" and a domain", pattern)
	}
	if s.exact == nil {
		s.exact = make(map[string]bool)
	}
	s.exact[host] = true
	return nil
}

// hostRules tells the kind of any host.
type hostRules struct {
	opted hostSet // Hosts and Origins
	api   hostSet // CloudAPIHosts
}

func (r *hostRules) kind(host string) hostKind {
	if r.api.has(host) {
		return cloudAPIHost
	}
	if k := cloudKind(host); k != foreignHost {
		return k
	}
	if r.opted.has(host) {
		return optedHost
	}
	return foreignHost
}

// pathKind says which policy a request's path falls under.
type pathKind uint8

const (
	otherPath pathKind = iota // passes through once
	apiPath                   // .../twirp/...
	rtcPath                   // .../rtc and .../rtc/...
)

func kindOfPath(path string) pathKind {
	if strings.Contains(path, "/twirp/") {
		return apiPath
	}
	if strings.HasSuffix(path, "/rtc") || strings.Contains(path, "/rtc/") {
		return rtcPath
	}
	return otherPath
}
