package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/lkrpc/lkrpc/testdata/servers"
)

// With a real livekit-server: it lists the dispatch that a call made, and its webhook ends the call.
func TestLiveKitServer(t *testing.T) {
	// The server needs the webhook's URL at its start and the service needs the server's secret, so the service comes last.
	var service http.Handler
	ready := make(chan struct{})
	heard := make(chan struct{}, 100)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-ready
		service.ServeHTTP(w, r)
		heard <- struct{}{}
	}))
	t.Cleanup(front.Close)
	server := servers.LiveKit(t, servers.Webhooks(front.URL+"/webhook"))

	w := &world{log: &logBuffer{}}
	log, numbers := newLogger(w.log), newMetrics()
	client, err := lkrpc.New(server.URL, auth.APIKey(server.Key, server.Secret), clientOptions(log, numbers)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	cfg := config{serverURL: server.URL, apiKey: server.Key, keys: auth.NewSimpleKeyProvider(server.Key, server.Secret)}
	if service, err = newService(cfg, client, log, numbers); err != nil {
		t.Fatal(err)
	}
	w.Handler = service
	close(ready)

	const body = `{"room": "call 17 ✓", "identity": "ann", "agent_name": "support", "metadata": "m"}`
	got := w.call(t.Context(), body, keyHeader, "k-1")
	if got.status != http.StatusOK || !got.Created || got.URL != server.URL {
		t.Fatalf("status %d, %s", got.status, got.body)
	}
	again := w.call(t.Context(), body, keyHeader, "k-1")
	if again.status != http.StatusOK || again.Created || again.DispatchID != got.DispatchID {
		t.Errorf("again: status %d, %s", again.status, again.body)
	}
	list, err := client.AgentDispatch.ListDispatch(t.Context(), &livekit.ListAgentDispatchRequest{Room: "call 17 ✓"})
	if err != nil {
		t.Fatal(err)
	}
	if all := list.GetAgentDispatches(); len(all) != 1 || all[0].GetId() != got.DispatchID ||
		all[0].GetAgentName() != "support" || all[0].GetMetadata() != "m" {
		t.Errorf("the server lists %v, want dispatch %s", all, got.DispatchID)
	}
	validate(t, server.URL, got.Token)
	w.wantOpen(t, "after the call", 1)

	if _, err := client.Room.DeleteRoom(t.Context(), &livekit.DeleteRoomRequest{Room: "call 17 ✓"}); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(waitLimit)
	for w.metric(t, "backend_calls_open") != 0 {
		select {
		case <-heard:
		case <-deadline:
			t.Fatalf("no webhook has ended the call; the log:\n%s", w.log)
		}
	}
	if refused := w.log.records(t, "webhook refused"); len(refused) > 0 {
		t.Errorf("webhooks of livekit-server are refused: %v", refused)
	}
	if late := w.call(t.Context(), body, keyHeader, "k-1"); late.status != http.StatusConflict {
		t.Errorf("a late retry: status %d, %s", late.status, late.body)
	}
}

// validate has the server check a participant's token.
func validate(t *testing.T, serverURL, token string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, serverURL+"/rtc/validate?access_token="+token, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(strings.ReplaceAll(err.Error(), token, "[token]"))
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the server answers %s to the token", resp.Status)
	}
}
