package cloudtest

import (
	"errors"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// joined is what a participant is told first of all.
type joined struct {
	region string
	room   *livekit.Room // nil, like me, for a token without a room or an identity
	me     *livekit.ParticipantInfo
	others []*livekit.ParticipantInfo
}

// The fields of LiveKit's signal messages that are sent. The messages themselves are no part of a server SDK's schema.
const (
	signalJoin       = 1 // SignalResponse.join, a JoinResponse, whose fields the others are
	joinRoom         = 1
	joinParticipant  = 2
	joinOthers       = 3
	joinServerRegion = 9
)

// message is the SignalResponse that says so. It states no ping interval: signal pings would not be answered. An error means
// that a participant was added whose texts are no UTF-8.
func (j joined) message() ([]byte, error) {
	join := protowire.AppendString(protowire.AppendTag(nil, joinServerRegion, protowire.BytesType), j.region)
	add := func(field protowire.Number, m proto.Message) error {
		b, err := proto.Marshal(m)
		join = protowire.AppendBytes(protowire.AppendTag(join, field, protowire.BytesType), b)
		return err
	}
	var err error
	if j.me != nil {
		err = errors.Join(add(joinRoom, j.room), add(joinParticipant, j.me))
	}
	for _, p := range j.others {
		err = errors.Join(err, add(joinOthers, p))
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, signalJoin, protowire.BytesType), join), err
}
