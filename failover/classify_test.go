package failover

import (
	"net/http"
	"strings"
	"testing"
)

// answered is an attempt that a server answered with a status, and of the type that was asked for.
func answered(status int) seen { return seen{status: status, typed: true} }

// sorts is what a table of outcomes says of each: the verdict less its words.
type sorts struct {
	step           step
	effect, broken bool
	blame          blame
}

func (v verdict) sorts() sorts { return sorts{v.step, v.effect, v.broken, v.blame} }

func TestClassifyAPI(t *testing.T) {
	const unknown, atOnce, second = true, blameAtOnce, blameSecond
	for _, test := range []struct {
		statuses []int
		want     sorts
	}{
		{[]int{200, 201, 204, 299}, sorts{step: stepDone}},
		{[]int{300, 304}, sorts{step: stepStop}}, // without a place to go to
		{[]int{400, 401, 402, 403, 404, 405, 409, 410, 412, 413, 422, 425, 429, 431, 499}, sorts{step: stepStop}},
		{[]int{408}, sorts{step: stepStop, effect: unknown}},
		{[]int{451}, sorts{step: stepPinned}},
		{[]int{500, 501, 505, 506, 507, 508, 510, 511, 519, 530, 599}, sorts{stepRepeat, unknown, false, second}},
		{[]int{502, 504, 520, 524, 525, 526, 527, 529}, sorts{stepRepeat, unknown, false, atOnce}},
		{[]int{503, 521, 522, 523}, sorts{stepRepeat, false, false, atOnce}}, // the server says that it did nothing
		{[]int{600, 999}, sorts{stepRepeat, unknown, false, second}},
		{[]int{101}, sorts{step: stepStop}},
	} {
		for _, status := range test.statuses {
			v := classifyAPI(answered(status), true)
			if v.sorts() != test.want {
				t.Errorf("%d is %+v, want %+v", status, v.sorts(), test.want)
			}
			if v.reason == "" || v.step != stepDone && !strings.Contains(v.reason, statusReason(status)) {
				t.Errorf("%d: the reason %q does not name it", status, v.reason)
			}
			if pinless := classifyAPI(answered(status), false); status != 451 && pinless.sorts() != test.want {
				t.Errorf("%d is %+v where no project is pinned, want %+v", status, pinless.sorts(), test.want)
			}
		}
	}
	if v := classifyAPI(answered(451), false); v.sorts() != (sorts{step: stepStop}) {
		t.Errorf("451 where no project is pinned is %+v, want the end", v.sorts())
	}
}

// What an answer says beside its status.
func TestClassifyAnswers(t *testing.T) {
	for status := 100; status < 600; status++ {
		if v := classifyAPI(seen{status: status, typed: true, sip: true}, true); v.sorts() != (sorts{step: stepStop}) {
			t.Errorf("%d with a SIP status is %+v, want the end: the phone rang", status, v.sorts())
		}
	}
	for status := 200; status < 300; status++ {
		if v := classifyAPI(seen{status: status}, true); v.sorts() != (sorts{step: stepStop, effect: true}) {
			t.Errorf("%d of another type is %+v, want the end, with an unknown outcome", status, v.sorts())
		}
	}
	for status := 300; status < 400; status++ {
		if v := classifyAPI(seen{status: status, typed: true, redirect: true}, true); v.sorts() != (sorts{step: stepStop}) {
			t.Errorf("redirect %d is %+v, want the end", status, v.sorts())
		}
	}
}

func TestClassifyRTC(t *testing.T) {
	for _, test := range []struct {
		statuses []int
		want     sorts
	}{
		{[]int{101, 200, 204}, sorts{step: stepDone}},
		{[]int{403, 451}, sorts{step: stepRepeat}},
		{[]int{408, 500, 502, 503, 504, 520, 521, 599}, sorts{step: stepRepeat, effect: true}},
		{[]int{301, 302, 307, 400, 401, 404, 405, 409, 410, 426, 429}, sorts{step: stepStop}},
		{[]int{0, -1}, sorts{step: stepStop}},
	} {
		for _, status := range test.statuses {
			if v := classifyRTC(seen{status: status}); v.sorts() != test.want || v.reason == "" {
				t.Errorf("%d is %+v, %q, want %+v", status, v.sorts(), v.reason, test.want)
			}
		}
	}
}

// Failures mean the same for API calls and connections, whatever status came before them.
func TestClassifyFailures(t *testing.T) {
	for name, test := range map[string]struct {
		seen seen
		want sorts
	}{
		"no connection":                    {seen{failure: failedUnsent}, sorts{stepRepeat, false, false, blameAtOnce}},
		"refused on a new connection":      {seen{failure: failedResend}, sorts{stepRepeat, false, false, blameSecond}},
		"refused on a kept-alive one":      {seen{failure: failedResend, reused: true}, sorts{stepRepeat, false, false, blameNone}},
		"a new connection broke":           {seen{failure: failedBroken}, sorts{stepRepeat, true, true, blameSecond}},
		"a kept-alive connection broke":    {seen{failure: failedBroken, reused: true}, sorts{stepRepeat, true, true, blameNone}},
		"an answer broke off":              {seen{failure: failedTrunc}, sorts{stepRepeat, true, true, blameSecond}},
		"no answer in time":                {seen{failure: failedSlow}, sorts{stepRepeat, true, true, blameAtOnce}},
		"too large an answer":              {seen{failure: failedTooLarge}, sorts{step: stepStop, effect: true}},
		"a request that is none":           {seen{failure: failedRequest}, sorts{step: stepStop}},
		"no upgrade":                       {seen{failure: failedUpgrade}, sorts{step: stepStop}},
		"the caller left":                  {seen{failure: failedContext}, sorts{step: stepStop, effect: true}},
		"the caller left before it was on": {seen{failure: failedContext, unsent: true}, sorts{step: stepStop}},
	} {
		for _, status := range []int{0, 200, 451, 503} {
			s := test.seen
			s.status, s.typed, s.sip = status, true, status == 503
			for _, v := range []verdict{classifyAPI(s, true), classifyAPI(s, false), classifyRTC(s)} {
				if v.sorts() != test.want || v.reason == "" {
					t.Errorf("%s, status %d: %+v, %q, want %+v", name, status, v.sorts(), v.reason, test.want)
				}
			}
		}
	}
}

func TestStatusReason(t *testing.T) {
	for code, want := range map[int]string{http.StatusServiceUnavailable: "503 Service Unavailable", 520: "520", 0: "0"} {
		if got := statusReason(code); got != want {
			t.Errorf("%d is %q, want %q", code, got, want)
		}
	}
}
