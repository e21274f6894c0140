package failover

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseOrigin(t *testing.T) {
	for raw, want := range map[string]string{
		"https://proj.livekit.cloud":        "https://proj.livekit.cloud",
		"HTTPS://Proj.LiveKit.Cloud/":       "https://proj.livekit.cloud",
		"wss://proj.livekit.cloud":          "https://proj.livekit.cloud",
		"ws://sfu.example.com:7880":         "http://sfu.example.com:7880",
		"https://proj.livekit.cloud:443":    "https://proj.livekit.cloud",
		"https://proj.livekit.cloud:":       "https://proj.livekit.cloud",
		"http://sfu.example.com:80/rtc":     "http://sfu.example.com",
		"http://sfu.example.com:443":        "http://sfu.example.com:443",
		"https://sfu.example.com:80":        "https://sfu.example.com:80",
		"https://[::1]:443":                 "https://[::1]",
		" https://sfu.example.com/base/ \n": "https://sfu.example.com",
	} {
		if o, err := parseOrigin(raw); err != nil || o.String() != want {
			t.Errorf("%q is %v, %v, want %s", raw, o, err, want)
		}
	}
	for raw, says := range map[string]string{
		"":                            "scheme",
		"sfu.example.com":             "scheme",
		"//sfu.example.com":           "scheme",
		"ftp://sfu.example.com":       `"ftp"`,
		"https://":                    "no host",
		"https://:443":                "no host",
		"https:sfu.example.com":       "no host",
		"https://u@sfu.example.com":   "user information",
		"https://u:p@x":               "user information",
		"https://sfu.example.com?a":   "query",
		"https://sfu.example.com#a":   "fragment",
		"https://sfu.example.com:x":   "no URL",
		"https://sfu example.com":     "no URL",
		"https://sfu.example.com\x00": "no URL",
	} {
		if o, err := parseOrigin(raw); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is %v, %v, want an error with %q", raw, o, err, says)
		}
	}
}

// at makes origins of short names.
func at(names ...string) []origin {
	var list []origin
	for _, n := range names {
		list = append(list, origin{"https", n})
	}
	return list
}

func TestPickNext(t *testing.T) {
	for _, test := range []struct {
		plan, tried []origin
		sameHost    bool
		want        string // "": none
	}{
		{at("home", "a", "b"), at("home"), true, "a"},
		{at("home", "a", "b"), at("home", "a"), true, "b"},
		{at("home", "a", "b"), at("home", "a", "b"), true, "b again"},
		{at("home", "a", "b"), at("home", "a", "b"), false, ""},
		{at("home", "a", "b"), at("a"), true, "home"},
		{at("home"), at("home"), true, "home again"},
		{at("home"), at("home"), false, ""},
		{at("home", "a"), at("home", "gone"), true, "a"},     // the list was read again
		{at("home"), at("home", "gone"), true, "gone again"}, // the host just tried, whatever the list says by now
		{nil, at("home"), true, "home again"},
		{at("home", "home.", "a"), at("home"), true, "a"}, // a trailing dot makes no other host
		{at("home:8443", "home.:8443", "home.:9443"), at("home:8443"), true, "home.:9443"},
	} {
		last := test.tried[len(test.tried)-1]
		next, same, ok := pickNext(test.plan, test.tried, last, test.sameHost)
		got := ""
		if ok {
			got = next.host
		}
		if ok && same {
			got += " again"
		}
		if got != test.want {
			t.Errorf("plan %v, tried %v, same host %t: %q, want %q", test.plan, test.tried, test.sameHost, got, test.want)
		}
	}
}

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		first  string
		others []origin
		soon   bool
		want   []origin
	}{
		{"home", nil, false, at("home")},
		{"home", at("a", "b"), false, at("home", "a", "b")},
		{"home", at("a", "home", "b"), false, at("home", "a", "b")},
		{"home", at("a", "a"), false, at("home", "a")},
		{"home", at("home.", "a", "a."), false, at("home", "a")}, // a trailing dot makes no other host
		{"home.", at("a"), true, at("home.", "a")},
		{"b", at("a", "b", "c"), false, at("b", "a", "c", "home")}, // home failed lately
		{"b", at("home", "a"), false, at("b", "a", "home")},
		{"b", nil, false, at("b", "home")},
		{"home", at("a", "b"), true, at("home", "a", "b")},
		{"b", at("a", "b", "c"), true, at("b", "home", "a", "c")}, // b was prepared
		{"b", at("home", "a"), true, at("b", "home", "a")},
	} {
		others := slices.Clone(test.others)
		got := plan(at("home")[0], at(test.first)[0], test.others, test.soon)
		if !slices.Equal(got, test.want) {
			t.Errorf("from %s, listed %v, soon %t: %v, want %v", test.first, test.others, test.soon, got, test.want)
		}
		if !slices.Equal(test.others, others) {
			t.Errorf("the list became %v", test.others)
		}
	}
}

// The table's regions are judged with "*.sfu.example.com" named by Hosts.
func TestTrusted(t *testing.T) {
	var cases []struct {
		Configured, Region string
		Trusted            bool
	}
	load(t, "trust.json", &cases)
	var rules hostRules
	if err := rules.opted.add("*.sfu.example.com"); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		configured, err := parseOrigin(c.Configured)
		if err != nil {
			t.Errorf("%q: %v", c.Configured, err)
			continue
		}
		use, skipped := rules.usableOrigins(configured, []Region{{URL: c.Region}})
		if trusted := len(use) == 1; trusted != c.Trusted || len(use)+skipped != 1 {
			t.Errorf("%q of %q: trusted %t, want %t", c.Region, c.Configured, trusted, c.Trusted)
		}
	}
}

func TestParseRegions(t *testing.T) {
	var cases []struct {
		Name, Body, Error string
		Regions           []string
	}
	load(t, "regionlists.json", &cases)
	for _, c := range cases {
		regions, err := parseRegions([]byte(c.Body))
		if c.Error != "" {
			if err == nil || !strings.Contains(err.Error(), c.Error) || regions != nil {
				t.Errorf("%s: %v, %v, want an error with %q", c.Name, regions, err, c.Error)
			}
			continue
		}
		got := []string{}
		for _, r := range regions {
			got = append(got, fmt.Sprintf("%s %s %d", r.Name, r.URL, r.Distance))
		}
		if err != nil || !slices.Equal(got, c.Regions) {
			t.Errorf("%s: %q, %v, want %q", c.Name, got, err, c.Regions)
		}
	}
}

// A list that is cut at the limit is used as far as it was read, wherever the cut falls.
func TestCutRegions(t *testing.T) {
	var list strings.Builder
	list.WriteString(`{"regions":[`)
	for i := 0; list.Len() < 2*maxListBytes; i++ {
		fmt.Fprintf(&list, `{"region":"r%d","url":"https://r%d.livekit.cloud","distance":"%d"},`, i, i, i)
	}
	for cut := maxListBytes; cut < maxListBytes+80; cut++ {
		regions, err := parseRegions([]byte(list.String()[:cut]))
		if err != nil || len(regions) < 900 {
			t.Fatalf("cut at %d: %d regions, %v", cut, len(regions), err)
		}
		for i, r := range regions {
			if want := fmt.Sprintf("https://r%d.livekit.cloud", i); r.URL != want {
				t.Fatalf("cut at %d: region %d is %q", cut, i, r.URL)
			}
		}
	}
	short := list.String()[:maxListBytes-80]
	short = short[:strings.LastIndex(short, `"url"`)]
	if regions, err := parseRegions([]byte(short)); err == nil {
		t.Errorf("a short list that breaks off gave %d regions", len(regions))
	}
}

func TestUsableOrigins(t *testing.T) {
	var rules hostRules
	home := origin{"https", "proj.livekit.cloud"}
	var listed []Region
	var want []origin
	for i := range 40 {
		host := fmt.Sprintf("r%d.livekit.cloud", i)
		listed = append(listed, Region{URL: "https://" + host}, Region{URL: "wss://" + host + ".:443/"}, Region{URL: "https://bad.example.com"})
		if i < 16 {
			want = append(want, origin{"https", host})
		}
	}
	use, skipped := rules.usableOrigins(home, listed)
	if !slices.Equal(use, want) || skipped != 40 {
		t.Errorf("%d entries skipped, used %v, want the first 16, each once", skipped, use)
	}
}

func TestListAge(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		header []string
		want   time.Duration
	}{
		{nil, defaultListAge},
		{[]string{""}, defaultListAge},
		{[]string{"max-age=60"}, time.Minute},
		{[]string{"Max-Age=60"}, time.Minute},
		{[]string{`max-age="60"`}, time.Minute},
		{[]string{"public, max-age=60"}, time.Minute},
		{[]string{"public,max-age=60,immutable"}, time.Minute},
		{[]string{"public", "max-age=60"}, time.Minute},
		{[]string{"max-age=0"}, 0},
		{[]string{"max-age=3600"}, time.Hour},
		{[]string{"max-age=86400"}, day},
		{[]string{"max-age=86401"}, day},
		{[]string{"max-age=4294967296"}, day},
		{[]string{"max-age=99999999999999999999999"}, day},
		{[]string{"no-store"}, 0},
		{[]string{"no-cache"}, 0},
		{[]string{"max-age=60, no-cache"}, 0},
		{[]string{"no-store, max-age=60"}, 0},
		{[]string{"max-age=60", "No-Store"}, 0},
		{[]string{"max-age=-1"}, defaultListAge},
		{[]string{"max-age=soon"}, defaultListAge},
		{[]string{"max-age="}, defaultListAge},
		{[]string{"max-age"}, defaultListAge},
		{[]string{"max-age=1.5"}, defaultListAge},
		{[]string{"max-age=99999999999999999999x"}, defaultListAge},
		{[]string{"s-maxage=60"}, defaultListAge},
		{[]string{"private"}, defaultListAge},
	} {
		if got := listAge(http.Header{"Cache-Control": test.header}); got != test.want {
			t.Errorf("Cache-Control %q: %v, want %v", test.header, got, test.want)
		}
	}
}
