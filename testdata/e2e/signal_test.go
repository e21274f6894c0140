package e2e

import (
	"context"
	"net/url"
	"testing"

	"github.com/coder/websocket"
	"github.com/livekit/protocol/livekit" // signal messages are no part of a server SDK
	"google.golang.org/protobuf/proto"
)

// join enters a room by its signal connection, as a participant's SDK does first of all, and stays until the test ends.
func join(t *testing.T, serverURL, token string) *livekit.JoinResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), jobLimit)
	defer cancel()
	query := url.Values{"access_token": {token}, "protocol": {"15"}, "auto_subscribe": {"1"}}
	conn, _, err := websocket.Dial(ctx, serverURL+"/rtc?"+query.Encode(), nil)
	if err != nil {
		t.Fatalf("join: %v", err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(-1)
	_, data, err := conn.Read(ctx)
	if err != nil {
		t.Fatalf("join: first message: %v", err)
	}
	var first livekit.SignalResponse
	if err := proto.Unmarshal(data, &first); err != nil {
		t.Fatal(err)
	}
	if first.GetJoin() == nil {
		t.Fatalf("the first message is %v, want a join response", &first)
	}
	return first.GetJoin()
}
