package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

// webhook sends an event as LiveKit does, signed with a key.
func (w *world) webhook(t *testing.T, key, secret, event string) reply {
	t.Helper()
	sum := sha256.Sum256([]byte(event))
	token, err := auth.NewAccessToken(key, secret).SetSha256(base64.StdEncoding.EncodeToString(sum[:])).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	return w.do(t.Context(), "POST", "/webhook", event, "Content-Type", "application/webhook+json", "Authorization", token)
}

// finished is the event that a room has finished.
func finished(id, room string, at time.Time) string {
	const event = `{"event": "room_finished", "id": %q, "createdAt": "%d", "room": {"name": %q}, "from": "the future"}`
	return fmt.Sprintf(event, id, at.Unix(), room)
}

func (w *world) wantOpen(t *testing.T, when string, want float64) {
	t.Helper()
	if n := w.metric(t, "backend_calls_open"); n != want {
		t.Errorf("%s %v calls are open, want %v", when, n, want)
	}
}

// A webhook ends the call whose room has finished, once, and only if LiveKit sent it.
func TestWebhook(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const body = `{"room": "r", "identity": "ann"}`
		w.mustCall(t, body, keyHeader, "k-1")
		w.mustCall(t, `{"room": "r", "identity": "bob"}`)
		w.wantOpen(t, "two participants:", 1)
		w.mustCall(t, `{"room": "other", "identity": "ann"}`)
		w.wantOpen(t, "two rooms:", 2)

		end := finished("EV_1", "r", time.Now())
		for what, got := range map[string]reply{
			"another secret": w.webhook(t, w.cloud.Key, "another-secret-that-is-long-enough", end),
			"another key":    w.webhook(t, "APIother", w.cloud.Secret, end),
			"no signature":   w.do(t.Context(), "POST", "/webhook", end),
		} {
			if got.status != http.StatusUnauthorized {
				t.Errorf("%s: status %d", what, got.status)
			}
		}
		w.wantOpen(t, "after forgeries", 2)
		if n := len(w.log.records(t, "webhook refused")); n != 3 {
			t.Errorf("the log has %d refused webhooks, want 3", n)
		}

		hear := func(event string) {
			t.Helper()
			if got := w.webhook(t, w.cloud.Key, w.cloud.Secret, event); got.status != http.StatusOK {
				t.Errorf("%s: status %d, %s", event, got.status, got.body)
			}
		}
		hear(finished("EV_0", "r", time.Now().Add(-time.Minute)))
		w.wantOpen(t, "after the end of an earlier room of that name", 2)
		hear(`{"event": "participant_joined", "id": "EV_2", "room": {"name": "r"}}`)
		hear(finished("EV_3", "unknown", time.Now()))
		w.wantOpen(t, "after other events", 2)
		hear(end)
		w.wantOpen(t, "after the room finished", 1)

		if got := w.call(t.Context(), body, keyHeader, "k-1"); got.status != http.StatusConflict || got.Token != "" {
			t.Errorf("a late retry: status %d, %s", got.status, got.body)
		}
		w.mustCall(t, body, keyHeader, "k-2")
		w.wantOpen(t, "after another call", 2)
		hear(end)
		w.wantOpen(t, "after the event came again", 2)
		hear(finished("EV_4", "r", time.Now()))
		w.wantOpen(t, "after the other call", 1)
	})
}

// Events without an id are not taken for one; what is older than a call ends it no more than another event does.
func TestWebhookWithoutID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.mustCall(t, `{"room": "r", "identity": "ann"}`)
		w.mustCall(t, `{"room": "other", "identity": "ann"}`)
		for _, c := range []struct {
			what, room string
			at         time.Time
			open       float64
		}{
			{"the one room finished", "r", time.Now(), 1},
			{"its event came again", "r", time.Now(), 1},
			{"an earlier room of the other's name finished", "other", time.Now().Add(-time.Minute), 1},
			{"the other room finished", "other", time.Now(), 0},
		} {
			if got := w.webhook(t, w.cloud.Key, w.cloud.Secret, finished("", c.room, c.at)); got.status != http.StatusOK {
				t.Errorf("status %d, %s", got.status, got.body)
			}
			w.wantOpen(t, "after "+c.what, c.open)
		}
	})
}

// A room may finish while the answer about its agent is still on its way. Then its call does not stay open for good.
func TestWebhookBeforeTheAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const body = `{"room": "r", "identity": "ann"}`
		w.makeRoom(t, "r")
		w.cloud.Region(0).Break(cloudtest.After(cloudtest.Delay(4*time.Second)), cloudtest.On(createDispatch), cloudtest.Times(1))
		timer := time.AfterFunc(2*time.Second, func() {
			w.webhook(t, w.cloud.Key, w.cloud.Secret, finished("EV_1", "r", time.Now()))
		})
		defer timer.Stop()
		w.mustCall(t, body, keyHeader, "k-1")
		w.wantOpen(t, "after the room finished", 0)
		if got := w.call(t.Context(), body, keyHeader, "k-1"); got.status != http.StatusConflict {
			t.Errorf("a late retry: status %d, %s", got.status, got.body)
		}
		w.mustCall(t, body, keyHeader, "k-2")
	})
}

// What is remembered is limited: the oldest is forgotten.
func TestRecent(t *testing.T) {
	r := newRecent[int](3)
	for i, key := range []string{"a", "b", "a", "c", "d", "e"} {
		r.put(key, i)
	}
	for key, want := range map[string]int{"a": -1, "b": -1, "c": 3, "d": 4, "e": 5} {
		got, ok := r.get(key)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
		}
	}
	r.put("d", 6)
	r.put("f", 7)
	if _, ok := r.get("c"); ok || len(r.values) != 3 || len(r.order) != 3 {
		t.Errorf("it holds %v in the order %v", r.values, r.order)
	}
}
