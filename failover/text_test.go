package failover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/lkrpc/lkrpc/failover"
)

// wantTame demands one printable line, no longer than an error with so many foreign texts may be.
func wantTame(t *testing.T, what, text string, foreign int) {
	t.Helper()
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || len(text) > foreign*600+200 {
		t.Errorf("%s: %d bytes: %q", what, len(text), text[:min(len(text), 300)])
	}
}

// What a transport or a server wrote into an error can do nothing to a terminal or a log, and is not endless. The error that it
// was is found all the same.
func TestTextsOfOthers(t *testing.T) {
	foul := errors.New("no\r\nlevel=ERROR msg=forged \x1b[31mway\x00\u202e" + strings.Repeat(" and on", 10_000))
	wrong := fmt.Errorf("%w: %w", foul, io.ErrClosedPipe)
	inWorld(t, func(w *world) {
		var logged bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		rt := w.over(roundTripper(func(*http.Request) (*http.Response, error) { return nil, wrong }), failover.Logger(log))
		_, dialErr := dialled(context.Background(), rt, "ws://"+project, wrong)
		for name, err := range map[string]error{
			"an API call":  w.post(context.Background(), rt, project, failover.Call{}).err,
			"a connection": dialErr,
		} {
			var e *failover.Error
			if !errors.As(err, &e) || !errors.Is(err, foul) || !errors.Is(err, io.ErrClosedPipe) {
				t.Fatalf("%s: the cause is not found in %v", name, err)
			}
			wantTame(t, name, err.Error(), 1+len(e.Attempts))
			for _, a := range e.Attempts {
				wantTame(t, name+"'s attempt", a.String(), 1)
				if !strings.Contains(a.String(), "no level=ERROR msg=forged [31mway and on") || !strings.HasSuffix(a.String(), "s)") {
					t.Errorf("%s: %s, want what was said and how long it took", name, a)
				}
			}
		}
		w.idle()
		var lines int
		for dec := json.NewDecoder(&logged); dec.More(); lines++ {
			var record map[string]any
			if err := dec.Decode(&record); err != nil {
				t.Fatal(err)
			}
			for key, value := range record {
				wantTame(t, "the log's "+key, fmt.Sprint(value), 1)
			}
		}
		if lines < 6 {
			t.Errorf("%d lines in the log, want those of 4 attempts and 2 calls", lines)
		}
	})
	wantTame(t, "one that somebody made", (&failover.Error{Err: foul, Trail: failover.Trail{Attempts: []failover.Attempt{{Err: foul}}}}).Error(), 2)
}

// A path is the caller's, and may hold what an error's line may not.
func TestPathInErrors(t *testing.T) {
	inWorld(t, func(w *world) {
		req := must(http.NewRequest(http.MethodPost, "http://"+project+"/twirp/a%0Ab", nil))
		_, err := w.transport().RoundTrip(req)
		if err == nil {
			t.Fatal("answered, by nobody")
		}
		wantTame(t, "the error", err.Error(), 4)
	})
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 5, ""},
		{"as it is", 8, "as it is"},
		{" a\tb\n\nc\x1b d\u0085e\u2028f ", 50, "a b c d e f"},
		{"123456", 5, "12345…"},
		{"1234語", 5, "1234…"},
		{"a\xff", 5, "a?"},
		{"to " + token, 10, "to [token]"},
		{strings.Repeat("x", 9000), 9000, strings.Repeat("x", 4096)},
	} {
		got := failover.Line(c.text, c.most)
		if got != c.want {
			t.Errorf("%q became %q, want %q", c.text, got, c.want)
		}
		if again := failover.Line(got, c.most); again != got {
			t.Errorf("%q became %q the second time", got, again)
		}
	}
}

func TestLineOfNoLength(t *testing.T) {
	for most, want := range map[int]string{-1: "…", 0: "…", 1: "…", 2: "ö…"} {
		if got := failover.Line("öl", most); got != want {
			t.Errorf("at most %d: %q, want %q", most, got, want)
		}
	}
}
