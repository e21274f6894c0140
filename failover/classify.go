package failover

import (
	"net/http"
	"strconv"
)

// failure says why an attempt has no answer that could be used.
type failure uint8

const (
	noFailure      failure = iota
	failedUnsent           // no connection: DNS, dial, TLS, the dial limit; proven by httptrace
	failedResend           // net/http wanted to send it again, for a reason that proves that the server did not process it
	failedBroken           // the connection, or whatever carried the request, failed
	failedTrunc            // the answer broke off
	failedSlow             // no answer within the attempt's patience, or an RTC attempt's limit
	failedTooLarge         // the answer is larger than maxAnswer
	failedRequest          // the request itself cannot be sent: its body failed, or net/http refuses it
	failedUpgrade          // RTC: the server answered with success, and dial made no connection of it
	failedContext          // the caller's context is done
)

// seen is one attempt reduced to what decides.
type seen struct {
	status   int // 0: no answer
	failure  failure
	typed    bool // a 2xx answer has the media type that was asked for
	sip      bool // the error metadata holds a SIP status: the call was placed, and this is how it went
	cut      bool // the body of a refusal was not read to its end, so that sip is not known
	redirect bool // a redirect to somewhere
	reused   bool // the connection had served a request before
	unsent   bool // with failedContext: proven that nothing was sent
}

// step is what follows an attempt.
type step uint8

const (
	stepDone   step = iota // the answer stands
	stepStop               // terminal: the error stands
	stepRepeat             // next region, else the same host
	stepPinned             // the project lives in other regions: read the list again and go there
)

// blame says what a failure followed by another origin's success means for later calls.
type blame uint8

const (
	blameNone   blame = iota
	blameSecond       // leave the origin at the second such call in a row
	blameAtOnce       // leave the origin now
)

// verdict is what a seen attempt means.
type verdict struct {
	step   step
	effect bool // the call may have taken effect on a server, and this attempt cannot tell
	broken bool // the connection is not to be used for a repeat on the same host
	blame  blame
	reason string
}

// classifyAPI reads an attempt at an API call (DESIGN: outcome → step). pinnable: a 451 of this host means "elsewhere".
func classifyAPI(s seen, pinnable bool) verdict {
	if s.failure != noFailure {
		return classifyFailure(s)
	}
	code := s.status
	switch {
	case s.sip:
		return verdict{step: stepStop, reason: "the call was placed and ended with a SIP status"}
	case code >= 200 && code < 300:
		if s.typed {
			return verdict{step: stepDone, reason: "answered"}
		}
		return verdict{step: stepStop, effect: true, reason: statusReason(code) + " of another type than asked for"}
	case s.redirect:
		return verdict{step: stepStop, reason: statusReason(code) + ": redirects are not followed"}
	case code == http.StatusUnavailableForLegalReasons && pinnable:
		return verdict{step: stepPinned, reason: statusReason(code) + ": the project is pinned to other regions"}
	case code == http.StatusRequestTimeout: // Twirp's canceled and deadline_exceeded: the server gave up midway
		return verdict{step: stepStop, effect: true, reason: statusReason(code)}
	case code >= 500:
		v := verdict{step: stepRepeat, effect: s.cut || !unprocessed(code), blame: blameSecond, reason: statusReason(code)}
		if code >= 502 && code <= 504 || code >= 520 && code <= 529 {
			v.blame = blameAtOnce
		}
		return v
	}
	return verdict{step: stepStop, reason: statusReason(code)}
}

// classifyRTC reads an attempt at an RTC connection. Only the status counts, never the text of a message.
func classifyRTC(s seen) verdict {
	if s.failure != noFailure {
		return classifyFailure(s)
	}
	code := s.status
	switch {
	case code == http.StatusSwitchingProtocols, code >= 200 && code < 300:
		return verdict{step: stepDone, reason: "connected"}
	case denies(code):
		return verdict{step: stepRepeat, reason: statusReason(code) + ": the project may not use this region"}
	case code == http.StatusRequestTimeout, code >= 500:
		return verdict{step: stepRepeat, effect: true, reason: statusReason(code)}
	}
	return verdict{step: stepStop, reason: statusReason(code)}
}

// denies reports whether an RTC status says that the project may not use the region.
func denies(status int) bool {
	return status == http.StatusForbidden || status == http.StatusUnavailableForLegalReasons
}

// classifyFailure is the part that API and RTC attempts share: there is no whole answer.
func classifyFailure(s seen) verdict {
	lost := blameSecond
	if s.reused {
		lost = blameNone // kept-alive connections end all the time; that says nothing about the origin
	}
	switch s.failure {
	case failedUnsent:
		return verdict{step: stepRepeat, blame: blameAtOnce, reason: "no connection"}
	case failedResend:
		return verdict{step: stepRepeat, blame: lost, reason: "the server refused the request unprocessed"}
	case failedTrunc:
		return verdict{step: stepRepeat, effect: true, broken: true, blame: blameSecond, reason: "the answer broke off"}
	case failedSlow:
		return verdict{step: stepRepeat, effect: true, broken: true, blame: blameAtOnce, reason: "no answer in time"}
	case failedTooLarge:
		return verdict{step: stepStop, effect: true, reason: "the answer is too large"}
	case failedRequest:
		return verdict{step: stepStop, reason: "the request cannot be sent"}
	case failedUpgrade:
		return verdict{step: stepStop, reason: "an answer without a connection"}
	case failedContext:
		return verdict{step: stepStop, effect: !s.unsent, reason: "the caller's context is done"}
	}
	return verdict{step: stepRepeat, effect: true, broken: true, blame: lost, reason: "the connection broke"}
}

// unprocessed tells the statuses with which a server or a CDN says that nothing behind it saw the request:
// 503, and the CDN's 521 (origin down), 522 (connection timed out), 523 (origin unreachable).
func unprocessed(status int) bool {
	return status == http.StatusServiceUnavailable || status >= 521 && status <= 523
}

// statusReason is "503 Service Unavailable", or "520" where HTTP has no name.
func statusReason(code int) string {
	reason := strconv.Itoa(code)
	if text := http.StatusText(code); text != "" {
		reason += " " + text
	}
	return reason
}
