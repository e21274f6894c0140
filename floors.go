package lkrpc

import (
	"time"

	"github.com/google/uuid"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	ringingTime  = 30 * time.Second // LiveKit's own default, sent explicitly so that both sides count on the same
	ringingSlack = 2 * time.Second  // for the answer to arrive after the last ring
	placingTime  = 30 * time.Second // for a SIP call that is placed but not waited for
)

// floor is the least time that a call needs, used where the caller sets no deadline, and the request as it is sent: a copy
// where something had to be made explicit, since a caller's message is never changed.
type floor struct {
	least   time.Duration // 0: no floor
	request proto.Message // nil: as it is
}

// sipTime: with wait_until_answered the answer comes when somebody picks up or the ringing ends.
func sipTime(m proto.Message) floor {
	req, ok := m.(*livekit.CreateSIPParticipantRequest)
	if !ok || !req.GetWaitUntilAnswered() {
		return floor{least: placingTime}
	}
	return ringingFloor(req, func(r *livekit.CreateSIPParticipantRequest, ring *durationpb.Duration) { r.RingingTimeout = ring })
}

// transferTime: the answer comes when the transfer's target has picked up.
func transferTime(m proto.Message) floor {
	req, ok := m.(*livekit.TransferSIPParticipantRequest)
	if !ok {
		return floor{}
	}
	return ringingFloor(req, func(r *livekit.TransferSIPParticipantRequest, ring *durationpb.Duration) { r.RingingTimeout = ring })
}

// whatsAppTime: with wait_until_answered the answer comes when the call is up; without, it comes sooner, and a floor does no harm.
func whatsAppTime(m proto.Message) floor {
	req, ok := m.(*livekit.AcceptWhatsAppCallRequest)
	if !ok {
		return floor{}
	}
	return ringingFloor(req, func(r *livekit.AcceptWhatsAppCallRequest, ring *durationpb.Duration) { r.RingingTimeout = ring })
}

// ringingFloor is the floor of a call that may ring until its ringing_timeout, which set makes explicit in a request.
func ringingFloor[M interface {
	proto.Message
	GetRingingTimeout() *durationpb.Duration
}](req M, set func(M, *durationpb.Duration)) floor {
	if ring, ok := ringing(req.GetRingingTimeout()); ok {
		return floor{least: ring + ringingSlack}
	}
	req = proto.CloneOf(req)
	set(req, durationpb.New(ringingTime))
	return floor{ringingTime + ringingSlack, req}
}

// ringing reads a ringing_timeout. One of more than a day is taken for a day: no sum with it can overflow.
func ringing(d *durationpb.Duration) (time.Duration, bool) {
	return min(d.AsDuration(), 24*time.Hour), d.AsDuration() > 0
}

// rpcTime: the answer comes when the participant's handler has answered.
func rpcTime(m proto.Message) floor {
	req, ok := m.(*livekit.PerformRpcRequest)
	if !ok || req.GetResponseTimeoutMs() == 0 {
		return floor{}
	}
	return floor{least: time.Duration(req.GetResponseTimeoutMs())*time.Millisecond + ringingSlack}
}

// withNonce gives a SendData request without a nonce one, on a copy. Receivers drop what they have seen. It is derived from
// the request id, so that a caller's own retry, with the same id, carries the same nonce.
func withNonce(req *livekit.SendDataRequest, requestID string) *livekit.SendDataRequest {
	if len(req.GetNonce()) > 0 {
		return req
	}
	req = proto.CloneOf(req)
	nonce := uuid.NewSHA1(nonceSpace, []byte(requestID))
	req.Nonce = nonce[:]
	return req
}

// nonceSpace sets nonces apart from other UUIDs that are derived from request ids. The value is arbitrary and fixed.
var nonceSpace = uuid.MustParse("6ba4a1f2-3ea5-4b0e-9a53-3f4f2d0b6d2e")
