package failover

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What holds for every input of what is pure. The expectations here are written from the design, not from the code.

// A verdict follows the table of outcomes whatever an attempt looked like, and no policy repeats what must not happen twice.
func FuzzClassify(f *testing.F) {
	var table struct {
		Rows []struct{ Outcomes []string }
	}
	load(f, "outcomes.json", &table)
	for _, row := range table.Rows {
		for _, outcome := range row.Outcomes {
			first, special, _ := strings.Cut(outcome, " ")
			if status, err := strconv.Atoi(first); err == nil {
				sip, redirect := special == "SIP status", strings.HasPrefix(special, "to ")
				for kind := range uint8(4) {
					f.Add(status, uint8(noFailure), special == "", sip, kind%2 == 0, redirect, false, false, kind, kind, int(kind))
				}
			}
		}
	}
	for failure := range uint8(failedContext) + 1 {
		f.Add(200, failure, true, false, false, false, true, true, failure, failure, 2)
	}
	f.Fuzz(func(t *testing.T, status int, failed uint8, typed, sip, cut, redirect, reused, unsent bool, kindByte, repeatByte uint8, made int) {
		s := seen{status, failure(failed) % (failedContext + 1), typed, sip, cut, redirect, reused, unsent}
		kind, repeat := hostKinds[kindByte%4], Repeat(repeatByte)
		p := apiPolicy(kind, &Call{Repeat: repeat}, false, noDeadline)
		for name, v := range map[string]verdict{"call": p.classify(s), "connection": rtcPolicy(kind, false).classify(s)} {
			if v.reason == "" {
				t.Errorf("%s, %+v: no reason", name, s)
			}
			if v.step != stepRepeat && (v.blame != blameNone || v.broken) {
				t.Errorf("%s, %+v: %+v: nothing follows, and yet something is to be remembered", name, s, v)
			}
			if v.step == stepDone && (v.effect || s.failure != noFailure) {
				t.Errorf("%s, %+v: %+v is no success", name, s, v)
			}
		}

		v := p.classify(s)
		answered := s.failure == noFailure
		proven := s.failure == failedUnsent || s.failure == failedResend || s.failure == failedRequest || s.failure == failedUpgrade ||
			s.failure == failedContext && unsent
		switch {
		case !answered && v.effect == proven:
			t.Errorf("%+v: may have taken effect %t", s, v.effect)
		case !answered && (s.failure == failedContext || s.failure == failedTooLarge || s.failure == failedRequest || s.failure == failedUpgrade) !=
			(v.step == stepStop):
			t.Errorf("%+v: step %d", s, v.step)
		case answered && (v.step == stepDone) != (status >= 200 && status < 300 && typed && !sip):
			t.Errorf("%+v: step %d", s, v.step)
		case answered && (sip || redirect && status < 500 || status >= 400 && status < 500 && status != 451) && v.step == stepRepeat:
			t.Errorf("%+v is repeated", s)
		case answered && status >= 500 && !sip && !redirect && v.step != stepRepeat:
			t.Errorf("%+v is not repeated", s)
		case (v.step == stepPinned) != (answered && status == 451 && !sip && !redirect && kind.listsRegions()):
			t.Errorf("%+v on a %v host: step %d", s, kind, v.step)
		case v.step == stepRepeat && answered && v.effect != (cut || !slices.Contains([]int{503, 521, 522, 523}, status)):
			t.Errorf("%+v: may have taken effect %t", s, v.effect)
		}

		again, why := p.mayRepeat(made, v)
		if again == (why != "") {
			t.Errorf("another attempt %t, because %q", again, why)
		}
		if again && (made >= 3 || kind == foreignHost) {
			t.Errorf("attempt %d on a %v host is followed by another", made, kind)
		}
		if again && v.effect && repeat != Safe && (repeat != Keyed || kind == optedHost) {
			t.Errorf("a %v call on a %v host is repeated after %+v", repeat, kind, s)
		}
		if harmless, _ := p.mayRepeat(made, verdict{step: v.step}); again && !harmless {
			t.Error("repeated because it may have taken effect")
		}

		// What does not count for a connection is all but the status.
		alone := seen{status: status, failure: s.failure, reused: reused, unsent: unsent}
		if got, want := classifyRTC(s), classifyRTC(alone); got != want {
			t.Errorf("a connection's %+v is %+v, with the status alone %+v", s, got, want)
		}
	})
}

// A Retry-After is a number of seconds, an HTTP date that is not over, or nothing.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"", "0", "1", "120", " 2 ", "-1", "+1", "1.5", "2, 3", "99999999999999999999999", "18700000000000000000A", "soon", "\u0662",
		"Wed, 04 Mar 2026 05:06:17 GMT", "Wednesday, 04-Mar-26 05:07:07 GMT", "Wed Mar  4 05:06:08 2026", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		f.Add(value, int64(1772600767), int64(10))
	}
	digits := regexp.MustCompile(`^[0-9]+$`)
	f.Fuzz(func(t *testing.T, value string, unix, seconds int64) {
		const year10000 = 253402300800
		now := time.Unix((unix%year10000+year10000)%year10000, 0)
		wait, ok := parseRetryAfter(value, now)
		if wait < 0 || wait > 365*24*time.Hour || !ok && wait != 0 {
			t.Errorf("%q is %v, %t", value, wait, ok)
		}
		text := strings.TrimSpace(value)
		date, err := http.ParseTime(text)
		switch {
		case digits.MatchString(text):
			n, err := strconv.ParseInt(text, 10, 64)
			if !ok || err == nil && n < 1e6 && wait != time.Duration(n)*time.Second || wait%time.Second != 0 {
				t.Errorf("%q is %v, %t", value, wait, ok)
			}
		case err == nil && ok != !date.Before(now):
			t.Errorf("%q at %v: a statement %t", value, now, ok)
		case err == nil && ok && wait < 365*24*time.Hour && !now.Add(wait).Equal(date):
			t.Errorf("%q is %v, which ends at %v", value, wait, now.Add(wait))
		case err != nil && ok:
			t.Errorf("%q is no number and no date, and still %v", value, wait)
		}
		if later, ok := parseRetryAfter(value, now.Add(time.Minute)); err == nil && ok && later > wait {
			t.Errorf("%q is %v, and a minute later %v", value, wait, later)
		}

		// What a server means by a number of seconds it can say by a date.
		if seconds %= 1e6; seconds >= 0 {
			want := time.Duration(seconds) * time.Second
			in, ok1 := parseRetryAfter(strconv.FormatInt(seconds, 10), now)
			at, ok2 := parseRetryAfter(now.Add(want).UTC().Format(http.TimeFormat), now)
			if !ok1 || in != want || now.Add(want).Unix() < year10000 && (!ok2 || at != want) {
				t.Errorf("%d s are %v, %t, as a date %v, %t", seconds, in, ok1, at, ok2)
			}
		}
	})
}

// A wait is never negative, never above its cap, and ends while there is time for what it waits for.
func FuzzNextWait(f *testing.F) {
	for _, left := range []time.Duration{noDeadline, 0, 1, 100 * time.Millisecond, 2 * time.Second, time.Hour} {
		for _, made := range []int{-1, 0, 1, 2, 3, 64, 1 << 40} {
			f.Add(made, true, int64(time.Second), true, int64(left), 0.5)
			f.Add(made, false, int64(time.Minute), true, int64(left), 0.999)
			f.Add(made, true, int64(2*time.Second), false, int64(left), 0.0)
			f.Add(made, false, int64(0), false, int64(left), math.NaN())
			f.Add(made, false, int64(0), false, int64(left), -1.0)
			f.Add(made, false, int64(0), false, int64(left), math.Inf(1))
		}
	}
	api, rtc := apiPolicy(projectHost, &Call{}, false, noDeadline), rtcPolicy(projectHost, false)
	f.Fuzz(func(t *testing.T, made int, same bool, retryAfterNanos int64, stated bool, leftNanos int64, random float64) {
		retryAfter, left := time.Duration(max(retryAfterNanos, 0)), time.Duration(leftNanos)
		widest := 200 * time.Millisecond
		for n := 1; n < made && widest < 5*time.Second; n++ {
			widest = min(2*widest, 5*time.Second)
		}
		pause := backoff(made, random)
		if pause < 0 || pause > widest {
			t.Errorf("backoff(%d, %v) = %v, not within [0, %v]", made, random, pause, widest)
		}
		if random >= 0 && random <= 1 && backoff(made, random/2) > pause {
			t.Errorf("backoff(%d, %v) = %v, less than with %v", made, random, pause, random/2)
		}
		if made > 0 && made < 1<<30 && backoff(made+1, random) < pause {
			t.Errorf("backoff shrinks from attempt %d to the next", made)
		}

		wait, ok, why := api.nextWait(made, same, retryAfter, stated, left, random)
		want := pause
		if same && stated {
			want = retryAfter
		}
		fits := (left < 0 || want < left) && (!same || !stated || retryAfter <= 2*time.Second)
		if ok != fits || ok && wait != want || !ok && wait != 0 || ok == (why != "") {
			t.Errorf("after attempt %d, same host %t, asked for %v (%t), %v left: wait %v, %t, %q, want %v, %t",
				made, same, retryAfter, stated, left, wait, ok, why, want, fits)
		}
		if wait, ok, _ := rtc.nextWait(made, same, retryAfter, stated, left, random); wait != 0 || !ok {
			t.Errorf("a connection waits %v, %t", wait, ok)
		}
	})
}

// cloudHost is what LiveKit Cloud's hosts look like, in letters of any case but of ASCII alone.
var cloudHost = regexp.MustCompile(`^(?:([a-z0-9_-]+\.)+livekit\.(?:cloud|run)|cloud-api\.(?:[a-z0-9_-]+\.)?livekit\.io)$`)

var labels = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*$`)

// lower and upper change the case of ASCII letters alone, byte by byte.
func lower(s string) string { return shift(s, 'A', 'a') }
func upper(s string) string { return shift(s, 'a', 'A') }

func shift(s string, from, to byte) string {
	b := []byte(s)
	for i, c := range b {
		if c >= from && c <= from+'z'-'a' {
			b[i] = c - from + to
		}
	}
	return string(b)
}

// plain is a host name as the resolver sees it.
func plain(name string) string { return lower(strings.TrimSuffix(name, ".")) }

// A host is the same in any case, with a port and with a trailing dot, and nothing that only looks like LiveKit Cloud gets
// more than one attempt.
func FuzzHosts(f *testing.F) {
	var cases []struct{ Host, Kind string }
	load(f, "hosts.json", &cases)
	for _, c := range cases {
		f.Add(c.Host, "*.sfu.example.com")
		f.Add("sfu.example.com", c.Host)
	}
	for _, host := range []string{"a.sfu.example.com:7880", ".sfu.example.com", "a..sfu.example.com", "a.notsfu.example.com"} {
		f.Add(host, "*.SFU.example.com.")
	}
	f.Fuzz(func(t *testing.T, host, pattern string) {
		kind := new(hostRules).kind(hostName(host))
		same := []string{lower(host), upper(host)}
		if !strings.ContainsAny(host, ":[]") {
			same = append(same, host+":443", host+":7880", host+":")
			if !strings.HasSuffix(host, ".") {
				same = append(same, host+".", host+".:443")
			}
		}
		for _, other := range same {
			if got := new(hostRules).kind(hostName(other)); got != kind {
				t.Errorf("%q is %v, and %q is %v", host, kind, other, got)
			}
		}
		if kind == optedHost {
			t.Errorf("%q is opted in by nobody", host)
		}

		// The host that counts is the one that a request would go to.
		u, err := url.Parse("https://" + host)
		if err != nil || u.Host == "" {
			if err == nil && kind != foreignHost {
				t.Errorf("%q is %v, but no host", host, kind)
			}
			return
		}
		target := plain(u.Hostname())
		kind = new(hostRules).kind(hostName(u.Host))
		attempts := apiPolicy(kind, &Call{}, false, noDeadline).attempts
		if cloud := cloudHost.MatchString(target); cloud != (attempts == 3) || cloud == (kind == foreignHost) {
			t.Errorf("%q goes to %q: %v, %d attempts", host, target, kind, attempts)
		}

		var rules hostRules
		if rules.opted.add(pattern) != nil {
			return
		}
		domain, wild := strings.CutPrefix(hostName(pattern), "*.")
		named := target == domain
		if wild {
			below, ok := strings.CutSuffix(target, "."+domain)
			named = ok && labels.MatchString(below)
		}
		switch got := rules.kind(hostName(u.Host)); {
		case kind != foreignHost && got != kind:
			t.Errorf("Hosts(%q) makes %q of %v a host that is %v", pattern, host, kind, got)
		case kind == foreignHost && got == optedHost && !named:
			t.Errorf("Hosts(%q) names %q", pattern, host)
		case kind == foreignHost && got != optedHost && named:
			t.Errorf("Hosts(%q) does not name %q", pattern, host)
		}
	})
}

// Whatever a region list says, what is used of it may be sent the token.
func FuzzRegions(f *testing.F) {
	var lists []struct{ Body string }
	load(f, "regionlists.json", &lists)
	for _, c := range lists {
		f.Add([]byte(c.Body), "https://proj.livekit.cloud", "*.sfu.example.com")
	}
	var trust []struct{ Configured, Region string }
	load(f, "trust.json", &trust)
	for _, c := range trust {
		body, err := json.Marshal(map[string]any{"regions": []any{map[string]string{"url": c.Region}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, c.Configured, "*.sfu.example.com")
	}
	var many []any
	for i := range 40 {
		many = append(many, map[string]any{"url": "https://r" + strconv.Itoa(i/2) + ".livekit.cloud", "distance": i})
	}
	body, _ := json.Marshal(map[string]any{"regions": many})
	f.Add(body, "wss://proj.livekit.cloud", "")
	f.Fuzz(func(t *testing.T, body []byte, server, pattern string) {
		configured, err := parseOrigin(server)
		if err != nil {
			return
		}
		var rules hostRules
		if rules.opted.add(pattern) != nil {
			rules = hostRules{}
		}
		regions, err := parseRegions(body)
		if err != nil && regions != nil {
			t.Errorf("a broken list gave %v", regions)
		}
		use, skipped := rules.usableOrigins(configured, regions)
		if len(use) > 16 || len(use)+skipped > len(regions) {
			t.Errorf("%d of %d regions used, %d skipped", len(use), len(regions), skipped)
		}
		home, err := url.Parse(configured.String())
		if err != nil {
			t.Fatalf("%q became the origin %v: %v", server, configured, err)
		}
		from := 0
		for i, o := range use {
			if contains(use[:i], o) {
				t.Errorf("%v is used twice", o)
			}
			u, err := url.Parse(o.String()) // where a request would go
			if err != nil || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
				t.Fatalf("%v is no origin: %v", o, err)
			}
			if u.Scheme != "https" && (u.Scheme != "http" || home.Scheme != "http") {
				t.Errorf("%v is weaker than %v", o, configured)
			}
			host, ours := plain(u.Hostname()), plain(home.Hostname())
			onCloud := cloudHost.MatchString(host) && !strings.HasSuffix(host, ".io")
			weAre := cloudHost.MatchString(ours) && !strings.HasSuffix(ours, ".io")
			if host != ours && !(onCloud && weAre) && !rules.opted.has(hostName(u.Host)) {
				t.Errorf("%v of %v is not to be trusted", o, configured)
			}
			at := slices.IndexFunc(regions[from:], func(r Region) bool { got, err := parseOrigin(r.URL); return err == nil && got == o })
			if at < 0 {
				t.Fatalf("%v is not in the list, or not in its order", o)
			}
			from += at + 1
			if listed, err := url.Parse(strings.TrimSpace(regions[from-1].URL)); err != nil || listed.User != nil {
				t.Errorf("%q is used, %v", regions[from-1].URL, err)
			}
		}
		if again, err := parseRegions(append([]byte(" \n"), body...)); len(body)+2 < maxListBytes && !slices.Equal(again, regions) {
			t.Errorf("blanks before the list make %v, %v of %v", again, err, regions)
		}
	})
}

// jwts finds what any library would read as a JWT: three parts, of which the first is a JSON object with an algorithm and the
// second an object, wherever in a text it begins.
func jwts(text string) (found []string) {
	letter := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
	}
	run := func(from int) int {
		for from < len(text) && letter(text[from]) {
			from++
		}
		return from
	}
	for i := range len(text) {
		header := run(i)
		if header == i || header == len(text) || text[header] != '.' {
			continue
		}
		payload := run(header + 1)
		if payload == header+1 || payload == len(text) || text[payload] != '.' {
			continue
		}
		var claims map[string]any
		var head struct{ Alg string }
		first, err1 := base64.RawURLEncoding.DecodeString(text[i:header])
		second, err2 := base64.RawURLEncoding.DecodeString(text[header+1 : payload])
		if err1 == nil && err2 == nil && bytes.HasPrefix(first, []byte("{")) && bytes.HasPrefix(second, []byte("{")) &&
			json.Unmarshal(first, &head) == nil && json.Unmarshal(second, &claims) == nil && head.Alg != "" {
			found = append(found, text[i:run(payload+1)])
		}
	}
	return found
}

// No JWT survives Scrub, however its header is written and whatever stands around it; and what is clean stays as it is.
func FuzzScrub(f *testing.F) {
	var cases []struct{ Text, Clean string }
	load(f, "scrub.json", &cases)
	for _, c := range cases {
		f.Add(c.Text, "", `"alg":"HS256"`, `"iss":"key"`, "signature-of-the-token", "")
		f.Add("", "", `"alg":"HS256"`, `"sub":"me"`, "signature", c.Text)
		f.Add(c.Text, "\n  ", `"alg": "HS256"`, "", "signature-of-the-token", "."+c.Clean)
		f.Add("", "\r\n", `"alg":"none"`, "", "short", c.Clean)
		f.Add("x", " ", `"Alg":"0"`, `"0":""`, "s", "")
		f.Add(c.Clean, "", `"":0,"alg":"0"`, " ", "s", "")
		f.Add(c.Clean, "\t", `"alg":"none"`, "\n  \"iss\": \"key\"\n", "", c.Clean)
	}
	f.Fuzz(func(t *testing.T, before, blanks, head, claims, signature, after string) {
		space := strings.Map(func(r rune) rune { return rune(" \t\r\n"[r&3]) }, blanks)
		b64 := base64.RawURLEncoding.EncodeToString
		token := b64([]byte("{"+space+head+"}")) + "." + b64([]byte("{"+claims+"}")) + "." + b64([]byte(signature))
		for _, text := range []string{before, after, before + token + after, before + " " + token + " " + after,
			"Bearer " + token, "access_token=" + token} {
			clean := Scrub(text)
			if found := jwts(clean); len(found) > 0 {
				t.Errorf("%q\nbecame\n%q\nwhich holds %q", text, clean, found)
			}
			if again := Scrub(clean); again != clean {
				t.Errorf("%q\nbecame\n%q\nand then\n%q", text, clean, again)
			}
			if len(clean) > len(text) && !strings.Contains(clean, "[token]") {
				t.Errorf("%q grew to %q", text, clean)
			}
		}
		if len(jwts(token)) > 0 {
			for _, text := range []string{token, "x " + token + ", y", "?access_token=" + token + "&x=1", "\"" + token + "\""} {
				if clean := Scrub(text); len(signature) > 2 && strings.Contains(clean, b64([]byte(signature))) {
					t.Errorf("%q\nbecame\n%q\nwith the signature", text, clean)
				}
			}
		}
	})
}

// A request id that is taken arrives as it was sent, as one header.
func FuzzRequestID(f *testing.F) {
	for _, id := range []string{"", "id-1", "5f0c2c2e-8f1d-4a55-9f3b-7d2f0d9c1e11", " id", "id ", "a b", "a\tb", "a\r\nX: y", "\x7f", "\x00", "é", "~!",
		strings.Repeat("x", 128), strings.Repeat("x", 129)} {
		f.Add(id)
	}
	visible := regexp.MustCompile(`^[!-~]{1,128}$`)
	f.Fuzz(func(t *testing.T, id string) {
		err := CheckRequestID(id)
		if visible.MatchString(id) != (err == nil) {
			t.Errorf("%q: %v", id, err)
		}
		if err != nil {
			if text := err.Error(); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(text) > 1000 {
				t.Errorf("%q: the error's text is %q", id, text)
			}
			return
		}
		req, err := http.NewRequest(http.MethodPost, "http://h/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(RequestIDHeader, id)
		var wire bytes.Buffer
		if err := req.Write(&wire); err != nil {
			t.Fatal(err)
		}
		got, err := http.ReadRequest(bufio.NewReader(&wire))
		if err != nil || !slices.Equal(got.Header.Values(RequestIDHeader), []string{id}) {
			t.Errorf("%q arrived as %q, %v", id, got.Header, err)
		}
	})
}
