package failover

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestCheckRequestID(t *testing.T) {
	for _, id := range []string{"x", "!", "~", "order-4711", `a"b\c`, strings.Repeat("x", 128), uuid.NewString()} {
		if err := CheckRequestID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for id, says := range map[string]string{
		"":                       "has 0",
		strings.Repeat("x", 129): "has 129",
		" ":                      "character 1",
		"a b":                    "character 2",
		"a\tb":                   "character 2",
		"ab\n":                   "character 3",
		"ab\r\nX-Evil: 1":        "character 3",
		"\x00":                   "character 1",
		"a\x7f":                  "character 2",
		"caf\u00e9":              "character 4",
	} {
		if err := CheckRequestID(id); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error with %q", id, err, says)
		}
	}
}

func TestCallOf(t *testing.T) {
	if got := callOf(context.Background()); *got != (Call{}) {
		t.Errorf("a plain context has the call %+v", got)
	}
	call := &Call{Repeat: Once}
	ctx := WithCall(context.Background(), call)
	if got := callOf(ctx); got != call {
		t.Errorf("got %+v", got)
	}
	if got := callOf(WithCall(ctx, nil)); *got != (Call{}) {
		t.Errorf("with a nil Call: %+v", got)
	}
}
