package failover

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

// load reads a table of cases.
func load(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func (k hostKind) String() string { return [...]string{"foreign", "project", "cloud api", "opted"}[k] }

func TestHosts(t *testing.T) {
	var cases []struct{ Host, Kind string }
	load(t, "hosts.json", &cases)
	attempts := map[string]int{"project": 3, "cloud api": 3, "foreign": 1}
	seen := map[string]bool{}
	for _, c := range cases {
		if seen[c.Host] {
			t.Errorf("%q stands twice in the table", c.Host)
		}
		seen[c.Host] = true
		kind := new(hostRules).kind(hostName(c.Host))
		if kind.String() != c.Kind {
			t.Errorf("%q is %v, want %s", c.Host, kind, c.Kind)
		}
		if got := apiPolicy(kind, &Call{}, false, -1).attempts; got != attempts[c.Kind] {
			t.Errorf("%q gets %d attempts, want %d", c.Host, got, attempts[c.Kind])
		}
	}
}

func TestHostName(t *testing.T) {
	for given, want := range map[string]string{
		"Example.COM":         "example.com",
		"example.com.":        "example.com",
		"example.com..":       "example.com.",
		"example.com:80":      "example.com",
		"example.com.:80":     "example.com",
		"example.com:":        "example.com",
		"example.com:http":    "example.com:http",
		"10.1.2.3:7880":       "10.1.2.3",
		"[::1]":               "::1",
		"[2001:DB8::1]:7880":  "2001:db8::1",
		"::1":                 "::1",
		"2001:db8::80":        "2001:db8::80",
		"[fe80::1%eth0]:7880": "fe80::1%eth0",
		"":                    "",
		".":                   "",
		":":                   "",
		"\u212A.Example.com":  "\u212A.example.com",
	} {
		if got := hostName(given); got != want {
			t.Errorf("hostName(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestHostPatterns(t *testing.T) {
	tests := []struct {
		pattern string
		has     string // hosts, separated by blanks
		hasNot  string
	}{
		{"sfu.example.com", "sfu.example.com SFU.Example.com sfu.example.com. sfu.example.com:7880",
			"example.com a.sfu.example.com notsfu.example.com sfu.example.com.evil.org sfu.example.co"},
		{"SFU.Example.COM.:7880", "sfu.example.com sfu.example.com:80", "example.com"},
		{"*.sfu.example.com", "a.sfu.example.com A.B.SFU.example.com:80 a.sfu.example.com.",
			"sfu.example.com .sfu.example.com a..sfu.example.com notsfu.example.com a.sfu.example.com.evil.org evil.org/.sfu.example.com"},
		{"*.Example.com.", "a.example.com", "example.com aexample.com"},
		{"localhost", "localhost localhost:7880 LOCALHOST", "a.localhost localhost.example.com"},
		{"10.1.2.3", "10.1.2.3 10.1.2.3:7880", "10.1.2.30 110.1.2.3"},
		{"::1", "[::1] [::1]:7880", "[::2] 127.0.0.1"},
		{"[::1]:7880", "[::1] [::1]:80", "[::2]"},
		{"fe80::1%eth0", "[fe80::1%eth0]:80", "[fe80::1]:80"},
		{"my_sfu", "my_sfu my_sfu:80", "my-sfu"},
	}
	for _, test := range tests {
		var rules hostRules
		if err := rules.opted.add(test.pattern); err != nil {
			t.Errorf("%q: %v", test.pattern, err)
		}
		for _, host := range strings.Fields(test.has) {
			if got := rules.kind(hostName(host)); got != optedHost {
				t.Errorf("with Hosts(%q) %q is %v", test.pattern, host, got)
			}
		}
		for _, host := range strings.Fields(test.hasNot) {
			if got := rules.kind(hostName(host)); got != foreignHost {
				t.Errorf("with Hosts(%q) %q is %v", test.pattern, host, got)
			}
		}
	}
}

func TestBadHostPatterns(t *testing.T) {
	for _, pattern := range []string{"", " ", ".", "*", "*.", "*.*", "**.example.com", "*.*.example.com", "a.*.example.com", "*example.com",
		"https://sfu.example.com", "sfu.example.com/rtc", "user@sfu.example.com", "sfu.example.com?x", "sfu.example.com#x", "sfu example.com",
		"sfu.example.com\n", ".example.com", "a..example.com", "sfu.example.com..", "*..example.com", "sfu.example.com:port", "a:1:2",
		"[::1", "[]", "b\u00FCcher.example.com", "\u212A.example.com", "sfu%2eexample.com"} {
		for name, option := range map[string]func(...string) Option{"Hosts": Hosts, "CloudAPIHosts": CloudAPIHosts} {
			_, err := New(nil, option("good.example.com", pattern))
			if err == nil {
				t.Errorf("%s(%q) is taken", name, pattern)
			} else if text := err.Error(); !strings.Contains(text, strconv.Quote(pattern)) || !strings.Contains(text, "host name") && !strings.Contains(text, "domain") {
				t.Errorf("%s(%q): %v: want the pattern and what to give instead", name, pattern, err)
			}
		}
	}
}

// An option adds to what is known by name. It takes nothing from LiveKit Cloud's own hosts, except that a project host may be
// named as one that serves an API.
func TestNamedHosts(t *testing.T) {
	tr, err := New(nil, Hosts("*.example.com", "proj.livekit.cloud"), CloudAPIHosts("agents.livekit.cloud", "api.example.com"),
		Origins("https://eu.example.org:8443"))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for host, want := range map[string]hostKind{
		"a.example.com":        optedHost,
		"eu.example.org":       optedHost,
		"eu.example.org:443":   optedHost,
		"api.example.com":      cloudAPIHost,
		"proj.livekit.cloud":   projectHost,
		"agents.livekit.cloud": cloudAPIHost,
		"other.livekit.cloud":  projectHost,
		"cloud-api.livekit.io": cloudAPIHost,
		"example.org":          foreignHost,
	} {
		if got := tr.rules.kind(hostName(host)); got != want {
			t.Errorf("%q is %v, want %v", host, got, want)
		}
	}
}

func TestHostKinds(t *testing.T) {
	for kind, want := range map[hostKind]struct{ dedups, lists bool }{
		projectHost:  {true, true},
		cloudAPIHost: {true, false},
		optedHost:    {false, true},
		foreignHost:  {false, false},
	} {
		if kind.dedups() != want.dedups || kind.listsRegions() != want.lists {
			t.Errorf("%v: dedups %t, lists regions %t, want %v", kind, kind.dedups(), kind.listsRegions(), want)
		}
	}
}

func TestPaths(t *testing.T) {
	for path, want := range map[string]pathKind{
		"/twirp/livekit.RoomService/ListRooms":      apiPath,
		"/base/twirp/livekit.RoomService/ListRooms": apiPath,
		"/twirp/":               apiPath,
		"/twirp/rtc":            apiPath,
		"/rtc":                  rtcPath,
		"/rtc/":                 rtcPath,
		"/rtc/v1":               rtcPath,
		"/rtc/validate":         rtcPath,
		"/base/rtc":             rtcPath,
		"/base/rtc/v1/validate": rtcPath,
		"":                      otherPath,
		"/":                     otherPath,
		"/twirp":                otherPath,
		"/twirpy/x":             otherPath,
		"/nottwirp/x":           otherPath,
		"/rtcs":                 otherPath,
		"/notrtc":               otherPath,
		"/notrtc/x":             otherPath,
		"/RTC":                  otherPath,
		"/agent":                otherPath,
		"/settings/regions":     otherPath,
		"rtc":                   otherPath,
		"/x.twirp/x":            otherPath,
		"/whip/v1/livekit.rtc":  otherPath,
	} {
		if got := kindOfPath(path); got != want {
			t.Errorf("%q is %d, want %d", path, got, want)
		}
	}
}
