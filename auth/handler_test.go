package auth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

func ignore(context.Context, *livekit.WebhookEvent) error { return nil }

// The handler behind a real HTTP server: each sort of failure has its status, and the answer says no more.
func TestWebhookHandler(t *testing.T) {
	const text = `{"event":"room_started","id":"EV_1"}`
	busy := errors.New("the database is busy")
	type key struct{}
	var result error
	var got []string
	failed := make(chan error, 1)
	handler, err := auth.NewWebhookHandler(webhookKeys, func(ctx context.Context, event *livekit.WebhookEvent) error {
		if ctx.Value(key{}) != "request" {
			t.Error("the context is not the request's")
		}
		got = append(got, event.GetId())
		return result
	}, auth.MaxWebhookBody(1000), auth.OnWebhookError(func(r *http.Request, err error) {
		if r.URL.Path != "/webhook" {
			t.Errorf("the request is %v", r.URL)
		}
		failed <- err
	}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Read-Before") != "" {
			io.Copy(io.Discard, r.Body)
		}
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "request")))
	}))
	defer server.Close()

	for name, c := range map[string]struct {
		method, header, body, encoding, before string
		result                                 error
		status                                 int
		kind                                   error // what OnWebhookError hears
	}{
		"good":        {"POST", signed(t, text), text, "", "", nil, 200, nil},
		"busy":        {"POST", signed(t, text), text, "", "", busy, 500, busy},
		"GET":         {"GET", signed(t, text), "", "", "", nil, 405, nil},
		"no header":   {"POST", "", text, "", "", nil, 401, auth.ErrNoAuthHeader},
		"junk":        {"POST", "junk", text, "", "", nil, 401, auth.ErrTokenMalformed},
		"other":       {"POST", webhookCase{Secret: "other"}.authorization(t), text, "", "", nil, 401, auth.ErrTokenSignature},
		"changed":     {"POST", signed(t, text), text + " ", "", "", nil, 401, auth.ErrInvalidChecksum},
		"large":       {"POST", signed(t, text), strings.Repeat("x", 2000), "", "", nil, 413, auth.ErrWebhookTooLarge},
		"compressed":  {"POST", signed(t, text), text, "br", "", nil, 415, auth.ErrWebhookEncoding},
		"no event":    {"POST", signed(t, "hello"), "hello", "", "", nil, 400, auth.ErrWebhookMalformed},
		"no body":     {"POST", signed(t, ""), "", "", "", nil, 400, auth.ErrWebhookNoBody},
		"read before": {"POST", signed(t, text), text, "", "yes", nil, 500, auth.ErrWebhookBodyRead},
	} {
		t.Run(name, func(t *testing.T) {
			result, got = c.result, nil
			req, err := http.NewRequest(c.method, server.URL+"/webhook", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"Authorization": c.header, "Content-Encoding": c.encoding, "X-Read-Before": c.before} {
				if value != "" {
					req.Header.Set(name, value)
				}
			}
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			answer, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status {
				t.Errorf("status is %d, want %d", resp.StatusCode, c.status)
			}
			want := ""
			if c.status != 200 {
				want = http.StatusText(c.status) + "\n"
			}
			if string(answer) != want {
				t.Errorf("the answer is %q, want %q", answer, want)
			}
			if c.kind != nil {
				if err := <-failed; !errors.Is(err, c.kind) {
					t.Errorf("OnWebhookError heard %v, want %v", err, c.kind)
				}
			}
			if handled := len(got) == 1 && got[0] == "EV_1"; handled != (c.status == 200 || c.kind == busy) {
				t.Errorf("the function got %q", got)
			}
		})
	}
	if len(failed) != 0 {
		t.Errorf("OnWebhookError heard %v", <-failed)
	}
}

func TestNewWebhookHandler(t *testing.T) {
	for says, make := range map[string]func() (http.Handler, error){
		"provider is nil": func() (http.Handler, error) { return auth.NewWebhookHandler(nil, ignore) },
		"secret is empty": func() (http.Handler, error) {
			return auth.NewWebhookHandler(auth.NewSimpleKeyProvider(testKey, ""), ignore)
		},
		"webhook function is": func() (http.Handler, error) { return auth.NewWebhookHandler(webhookKeys, nil) },
	} {
		h, err := make()
		if h != nil || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, %v, want an error that says %s", h, err, says)
		}
	}
}
