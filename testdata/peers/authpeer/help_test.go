package authpeer

import (
	"testing"

	peer "github.com/livekit/protocol/auth"
	peerkit "github.com/livekit/protocol/livekit"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
)

const (
	key    = "APIpeer"
	secret = "a-secret-that-both-sides-know-and-nobody-else"
)

var (
	ourKeys  = auth.NewSimpleKeyProvider(key, secret)
	peerKeys = peer.NewSimpleKeyProvider(key, secret)
)

// cross carries a message to the other side's type, by its bytes.
func cross[To, From proto.Message](t testing.TB, from From, to To) To {
	t.Helper()
	data, err := proto.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := (proto.UnmarshalOptions{}).Unmarshal(data, to); err != nil {
		t.Fatal(err)
	}
	if unknown := to.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		t.Fatalf("%T has fields that %T does not know", from, to)
	}
	return to
}

func toPeer(t testing.TB, c *livekit.RoomConfiguration) *peerkit.RoomConfiguration {
	if c == nil {
		return nil
	}
	return cross(t, c, &peerkit.RoomConfiguration{})
}

func fromPeer(t testing.TB, c *peerkit.RoomConfiguration) *livekit.RoomConfiguration {
	if c == nil {
		return nil
	}
	return cross(t, c, &livekit.RoomConfiguration{})
}
