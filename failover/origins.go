package failover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxListBytes    = 64 << 10
	maxListEntries  = 16
	defaultListAge  = 5 * time.Minute
	longestListAge  = 24 * time.Hour
	maxStaleListAge = time.Hour // an older list does not serve even in need
)

// origin is where requests go: a scheme (http or https) and a host with an optional port.
type origin struct {
	scheme, host string
}

func (o origin) String() string { return o.scheme + "://" + o.host }

// same reports whether two origins are one place: a trailing dot makes no other host of a name.
func (o origin) same(p origin) bool {
	return o == p || o.scheme == p.scheme && o.undotted() == p.undotted()
}

// undotted is the host, with its port, without the trailing dot of a name.
func (o origin) undotted() string {
	name, port, found := strings.Cut(o.host, ":")
	if !found {
		return strings.TrimSuffix(o.host, ".")
	}
	return strings.TrimSuffix(name, ".") + ":" + port
}

// parseOrigin reads a server or region URL. ws and wss count as http and https; a path is not part of an origin.
func parseOrigin(raw string) (origin, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil:
		return origin{}, errors.New("it is no URL")
	case u.User != nil:
		return origin{}, errors.New("it carries user information")
	case u.RawQuery != "" || u.Fragment != "":
		return origin{}, errors.New("it carries a query or a fragment")
	}
	return originOf(u)
}

func originOf(u *url.URL) (origin, error) {
	o := origin{host: strings.TrimSuffix(lowerASCII(u.Host), ":")}
	switch u.Scheme { // url.Parse lower-cases it
	case "http", "ws":
		o.scheme, o.host = "http", strings.TrimSuffix(o.host, ":80")
	case "https", "wss":
		o.scheme, o.host = "https", strings.TrimSuffix(o.host, ":443")
	default:
		return origin{}, fmt.Errorf("its scheme %q is none of http, https, ws, wss", u.Scheme)
	}
	if u.Hostname() == "" {
		return origin{}, errors.New("it has no host")
	}
	return o, nil
}

// pickNext chooses where the next attempt goes: the first origin not yet tried, else, if sameHost, the one just tried.
func pickNext(plan, tried []origin, last origin, sameHost bool) (next origin, same, ok bool) {
	for _, o := range plan {
		if !contains(tried, o) {
			return o, false, true
		}
	}
	return last, true, sameHost
}

func contains(list []origin, o origin) bool {
	for _, x := range list {
		if x.same(o) {
			return true
		}
	}
	return false
}

// trusted reports whether a region that a list of the configured origin names may be sent the bearer token: its scheme is no
// weaker, and its host is a Cloud project's where the configured one is, or the configured host itself, or named by an option.
func (r *hostRules) trusted(configured, region origin) bool {
	if configured.scheme == "https" && region.scheme != "https" {
		return false
	}
	own, host := hostName(configured.host), hostName(region.host)
	return host == own || cloudKind(own) == projectHost && cloudKind(host) == projectHost || r.opted.has(host)
}

// Region is one entry of a region list, in the terms of LiveKit's RegionSettings.
type Region struct {
	Name     string // "osaka"; not used to decide
	URL      string // where the region is reached: http, https, ws or wss
	Distance int64  // in the server's unit, 0 if unknown; not used to decide: the order of the list is
}

// parseRegions reads the answer of /settings/regions as far as it is usable: entries in server order, a bad one skipped alone,
// unknown fields ignored. body may end midway in a list that is too long; what was read until then counts.
func parseRegions(body []byte) ([]Region, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errors.New("failover: the region list is no JSON object")
	}
	cut := len(body) >= maxListBytes
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("failover: the region list is broken: %w", err)
		}
		if key == "regions" {
			return parseEntries(dec, cut)
		}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return nil, fmt.Errorf("failover: the region list is broken: %w", err)
		}
	}
	return nil, nil
}

func parseEntries(dec *json.Decoder, cut bool) (regions []Region, err error) {
	switch tok, err := dec.Token(); {
	case err != nil:
		return nil, fmt.Errorf("failover: the region list is broken: %w", err)
	case tok == nil: // null
		return nil, nil
	case tok != json.Delim('['):
		return nil, errors.New("failover: the region list's \"regions\" is no array")
	}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			if cut {
				return regions, nil
			}
			return nil, fmt.Errorf("failover: the region list is broken: %w", err)
		}
		var entry struct {
			Region   any    `json:"region"`
			URL      string `json:"url"`
			Distance any    `json:"distance"`
		}
		if json.Unmarshal(raw, &entry) != nil || entry.URL == "" {
			continue
		}
		name, _ := entry.Region.(string)
		regions = append(regions, Region{Name: name, URL: entry.URL, Distance: distance(entry.Distance)})
	}
	return regions, nil
}

// distance reads a number or, as protobuf JSON writes 64-bit numbers, a text; anything else is unknown.
func distance(v any) int64 {
	switch v := v.(type) {
	case float64:
		if v > -1e18 && v < 1e18 {
			return int64(v)
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// usableOrigins keeps the regions that may be used, each origin once, at most 16.
func (r *hostRules) usableOrigins(configured origin, regions []Region) (use []origin, skipped int) {
	for _, region := range regions {
		o, err := parseOrigin(region.URL)
		if err != nil || !r.trusted(configured, o) {
			skipped++
			continue
		}
		if len(use) < maxListEntries && !contains(use, o) {
			use = append(use, o)
		}
	}
	return use, skipped
}

// listAge is how long a region list is fresh: max-age of its Cache-Control, 5 minutes without one, never more than a day;
// 0 if the server says that it is not to be kept.
func listAge(header http.Header) time.Duration {
	age := defaultListAge
	for _, line := range header.Values("Cache-Control") {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(name) {
			case "no-store", "no-cache":
				return 0
			case "max-age":
				if given, ok := parseSeconds(strings.Trim(value, `"`), longestListAge); ok {
					age = given
				}
			}
		}
	}
	return age
}
