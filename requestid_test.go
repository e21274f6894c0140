package lkrpc_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
)

func TestRequestID(t *testing.T) {
	rec := &recorder{}
	client := newTestClient(t, "h", rec)
	sent := func(err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		ids := rec.last(t).Header.Values(failover.RequestIDHeader)
		if len(ids) != 1 {
			t.Fatalf("request ids %q, want one", ids)
		}
		return ids[0]
	}
	dispatch := func(id, room, metadata string) error {
		ctx := background
		if id != "" {
			ctx = lkrpc.WithRequestID(ctx, id)
		}
		_, err := client.AgentDispatch.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{
			Room: room, AgentName: "a", Metadata: metadata, Attributes: map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"},
		})
		return err
	}

	one, two := sent(dispatch("", "r", "")), sent(dispatch("", "r", ""))
	if one == two || len(one) != 36 {
		t.Errorf("without a key the ids are %q and %q, want two UUIDs", one, two)
	}
	for range 8 { // the map's order must not make it another request
		if id := sent(dispatch("my-key", "r", "m")); id != "my-key" {
			t.Errorf("id %q, want the caller's", id)
		}
	}
	wantLocal(t, "the key with another request", dispatch("my-key", "r", "other"), `"my-key" was used for another request`)
	wantLocal(t, "the key with another room", dispatch("my-key", "r2", "m"), `"my-key" was used for another request`)
	_, err := client.Ingress.CreateIngress(lkrpc.WithRequestID(background, "my-key"), &livekit.CreateIngressRequest{})
	wantLocal(t, "the key with another method", err, "AgentDispatchService/CreateDispatch")

	_, err = client.Room.ListRooms(lkrpc.WithRequestID(background, "my-key"), &livekit.ListRoomsRequest{})
	if id := sent(err); id == "my-key" {
		t.Error("a Safe call was sent with the caller's key")
	}
	for _, bad := range []string{strings.Repeat("x", 129), "with blank", "tab\t", "ü", "line\n", "\x7f"} {
		wantLocal(t, fmt.Sprintf("key %q", bad), dispatch(bad, "r", "m"), "request id")
	}
	if id := strings.Repeat("~", 128); sent(dispatch(id, "r", "m")) != id {
		t.Error("a key of 128 characters was not sent as it is")
	}
}

func TestRequestIDEmptyIsRefused(t *testing.T) {
	client := newTestClient(t, "h", &recorder{})
	_, err := client.AgentDispatch.CreateDispatch(lkrpc.WithRequestID(background, ""), &livekit.CreateAgentDispatchRequest{Room: "r"})
	wantLocal(t, "an empty key", err, "1 to 128")
}

// The caller's own retry of SendData carries the nonce of the first try, so that receivers drop the second.
func TestSendDataNonce(t *testing.T) {
	var nonces [][]byte
	client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		var req livekit.SendDataRequest
		if err == nil {
			err = proto.Unmarshal(body, &req)
		}
		nonces = append(nonces, req.Nonce)
		return answer(r, 200, "application/protobuf", ""), err
	}))
	send := func(id string, nonce []byte) {
		ctx := background
		if id != "" {
			ctx = lkrpc.WithRequestID(ctx, id)
		}
		if _, err := client.Room.SendData(ctx, &livekit.SendDataRequest{Room: "r", Data: []byte("d"), Nonce: nonce}); err != nil {
			t.Fatal(err)
		}
	}
	send("", nil)
	send("", nil)
	send("key", nil)
	send("key", nil)
	send("", []byte("my own"))
	if len(nonces[0]) != 16 || bytes.Equal(nonces[0], nonces[1]) {
		t.Errorf("nonces %x and %x, want two different ones of 16 bytes", nonces[0], nonces[1])
	}
	if !bytes.Equal(nonces[2], nonces[3]) || bytes.Equal(nonces[2], nonces[0]) {
		t.Errorf("nonces %x and %x, want the same for the same key", nonces[2], nonces[3])
	}
	if string(nonces[4]) != "my own" {
		t.Errorf("nonce %q, want the caller's", nonces[4])
	}
}

// A Client knows thousands of the caller's request ids, and forgets the oldest.
func TestRequestIDsAreRemembered(t *testing.T) {
	client := newTestClient(t, "h", &recorder{})
	dispatch := func(id int, room string) error {
		ctx := lkrpc.WithRequestID(background, fmt.Sprint("id-", id))
		_, err := client.AgentDispatch.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: room, AgentName: "a"})
		return err
	}
	for id := range 4000 {
		if err := dispatch(id, "r"); err != nil {
			t.Fatal(err)
		}
	}
	wantLocal(t, "the oldest id with another request", dispatch(0, "other"), "was used for another request")
	for id := range 1000 {
		if err := dispatch(4000+id, "r"); err != nil {
			t.Fatal(err)
		}
	}
	if err := dispatch(0, "other"); err != nil {
		t.Errorf("an id that was used 5,000 ids before: %v", err)
	}
}
