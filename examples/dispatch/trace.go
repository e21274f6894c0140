package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// trace writes what happens, a line each, for a person to read. Safe for concurrent use.
type trace struct {
	mu     sync.Mutex
	out    *os.File
	colour bool
	method string // of the newest attempt, if attemptOf wrote it
}

func newTrace(out *os.File) *trace {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &trace{out: out, colour: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// The SGR codes of the colours.
const (
	red   = "31"
	green = "32"
	dim   = "2"
	bold  = "1"
)

// paint wraps text in a colour. Without colours the text is the same.
func (t *trace) paint(code, text string) string {
	if !t.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (t *trace) line(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.out, strings.TrimRight(text, " "))
}

func (t *trace) say(format string, args ...any) { t.line(fmt.Sprintf(format, args...)) }

// title begins a new part.
func (t *trace) title(format string, args ...any) {
	t.line("")
	t.line(t.paint(bold, fmt.Sprintf(format, args...)))
}

const row = "  %-7s  %-42s  %7s  %s"

// table begins a list of attempts.
func (t *trace) table() {
	t.line(t.paint(dim, fmt.Sprintf(row, "attempt", "where", "took", "what happened")))
}

// attempt writes an attempt that is over. It is what failover.OnAttempt calls.
func (t *trace) attempt(_ context.Context, a failover.Attempt) {
	if a.Wait > 0 {
		t.line(t.paint(dim, fmt.Sprintf(row, "", "", short(a.Wait), "wait")))
	}
	host := strings.TrimPrefix(strings.TrimPrefix(a.Origin, "https://"), "http://")
	colour := red
	if a.Err == nil && a.Status >= 200 && a.Status < 300 {
		colour = green
	}
	t.line(t.paint(colour, fmt.Sprintf(row, fmt.Sprint(a.Number), host, short(a.Duration), happened(a))))
}

// attemptOf is attempt, with the method named where another one begins.
func (t *trace) attemptOf(ctx context.Context, a failover.Attempt) {
	method, _ := twirp.MethodName(ctx)
	t.mu.Lock()
	same := method == t.method
	t.method = method
	t.mu.Unlock()
	if !same {
		t.line(t.paint(dim, "  "+method))
	}
	t.attempt(ctx, a)
}

// happened says what came of an attempt.
func happened(a failover.Attempt) string {
	switch {
	case a.Err == nil:
		return a.Reason
	case strings.HasPrefix(a.Err.Error(), a.Reason):
		return a.Err.Error()
	}
	return a.Reason + ": " + a.Err.Error()
}

func short(d time.Duration) string {
	if d < time.Millisecond {
		return "<1ms"
	}
	return d.Round(time.Millisecond).String()
}

func (t *trace) good(word, text string) { t.line("  " + t.paint(green, word) + "  " + text) }
func (t *trace) bad(word, text string)  { t.line("  " + t.paint(red, word) + "  " + text) }

func (t *trace) dispatched(d *livekit.AgentDispatch) {
	t.good("OK", fmt.Sprintf("dispatch %s of agent %q to room %q", d.GetId(), d.GetAgentName(), d.GetRoom()))
}

// failed writes why a call failed, and what that means.
func (t *trace) failed(err error) {
	var e *lkrpc.Error
	if !errors.As(err, &e) {
		t.bad("FAILED", err.Error())
		return
	}
	t.bad("FAILED", fmt.Sprintf("%s/%s: %s: %s", e.Service, e.Method, e.Code(), e.Msg()))
	effect := "Nothing was dispatched."
	if e.OutcomeUnknown {
		effect = "Whether the agent was dispatched is unknown."
	}
	t.say("          %s Attempts: %d. Request id: %s", effect, len(e.Attempts), e.RequestID)
}
