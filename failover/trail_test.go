package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What is clean stays as it is, to the letter.
func TestScrub(t *testing.T) {
	var cases []struct{ Name, Text, Clean string }
	load(t, "scrub.json", &cases)
	for _, c := range cases {
		if got := Scrub(c.Text); got != c.Clean {
			t.Errorf("%s:\n  %s\nbecame\n  %s\nwant\n  %s", c.Name, c.Text, got, c.Clean)
		}
	}
}

func TestScrubError(t *testing.T) {
	if err := scrubError(nil, ""); err != nil {
		t.Errorf("no error became %v", err)
	}
	if err := scrubError(io.EOF, ""); err != io.EOF {
		t.Errorf("an error without a token became another: %v", err)
	}
	cause := &net.OpError{Op: "read", Err: fmt.Errorf("eyJhbGciOiJIUzI1NiJ9.e30.x: %w", io.EOF)}
	err := scrubError(fmt.Errorf("dialling: %w", cause), "")
	var op *net.OpError
	if text := err.Error(); strings.Contains(text, "eyJ") || !strings.Contains(text, "dialling: read: [token]: EOF") {
		t.Errorf("the text is %q", text)
	}
	if !errors.Is(err, io.EOF) || !errors.As(err, &op) || op != cause {
		t.Error("its causes cannot be found any more")
	}
}

func TestErrorTimeout(t *testing.T) {
	cause := errors.New("the user went away")
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"deadline":                  {context.DeadlineExceeded, true},
		"deadline with a cause":     {fmt.Errorf("%w: %w", context.DeadlineExceeded, cause), true},
		"deadline, token taken out": {scrubError(fmt.Errorf("eyJhbGciOiJIUzI1NiJ9: %w", context.DeadlineExceeded), ""), true},
		"cancelled":                 {context.Canceled, false},
		"broken":                    {io.ErrUnexpectedEOF, false},
		"refused":                   {&net.OpError{Op: "dial", Err: errors.New("refused")}, false},
		"nothing":                   {nil, false},
	} {
		var err net.Error
		if e := (error)(&Error{Err: test.err}); !errors.As(e, &err) && test.want || (&Error{Err: test.err}).Timeout() != test.want {
			t.Errorf("%s: timeout %t, want %t", name, !test.want, test.want)
		}
	}
}

func TestErrorText(t *testing.T) {
	start := time.Now()
	err := &Error{
		Op: "POST /twirp/livekit.SIP/CreateSIPParticipant", Host: "proj.livekit.cloud", Err: io.EOF,
		Trail: Trail{RequestID: "id-1", OutcomeUnknown: true, BudgetSpent: true, Attempts: []Attempt{
			{Number: 1, Origin: "https://proj.livekit.cloud", Status: 503, Start: start, Duration: 12345 * time.Microsecond, Reason: "503 Service Unavailable"},
			{Number: 2, Origin: "https://one.livekit.cloud", Err: io.EOF, Start: start, Wait: 150 * time.Millisecond, Duration: time.Second, Reason: "the connection broke"},
		}},
	}
	want := "POST /twirp/livekit.SIP/CreateSIPParticipant on proj.livekit.cloud: EOF [outcome unknown: it may have taken effect] " +
		"[local retry budget spent] [request id id-1] [attempt 1 https://proj.livekit.cloud: 503 Service Unavailable (12ms); " +
		"attempt 2 https://one.livekit.cloud after 150ms: the connection broke: EOF (1s)]"
	if got := err.Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := fmt.Sprintf("%v %+v", err, err); got != want+" "+want {
		t.Errorf("printed otherwise: %s", got)
	}
	if got, want := (&Error{Op: "connect", Host: "h", Err: io.EOF}).Error(), "connect on h: EOF"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if (&Error{}).Error() == "" { // one that somebody made: it must not panic
		t.Error("the zero value has no text")
	}
}

func TestStatusError(t *testing.T) {
	cause := errors.New("bad handshake")
	for _, test := range []struct {
		err  *StatusError
		want string
	}{
		{&StatusError{Code: http.StatusForbidden}, "HTTP 403 Forbidden"},
		{&StatusError{Code: 520}, "HTTP 520"},
		{&StatusError{Code: 403, Err: cause}, "HTTP 403: bad handshake"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
		if test.err.StatusCode() != test.err.Code || !errors.Is(test.err, test.err) || test.err.Err != nil && !errors.Is(test.err, cause) {
			t.Errorf("%v does not tell its status or its cause", test.err)
		}
	}
}
