package auth

import (
	"slices"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// ToPermission returns what the grant means inside a room, as the room API has it. A nil grant allows nothing.
func (v *VideoGrant) ToPermission() *livekit.ParticipantPermission {
	p := &livekit.ParticipantPermission{
		CanPublish:            v.GetCanPublish(),
		CanSubscribe:          v.GetCanSubscribe(),
		CanPublishData:        v.GetCanPublishData(),
		CanPublishSources:     v.GetCanPublishSources(),
		CanUpdateMetadata:     v.GetCanUpdateOwnMetadata(),
		CanSubscribeMetrics:   v.GetCanSubscribeMetrics(),
		CanManageAgentSession: v.GetCanManageAgentSession(),
	}
	if v != nil {
		p.Hidden = v.Hidden
		setDeprecated(p, v.Recorder, v.Agent)
	}
	return p
}

// UpdateFromPermission gives the grant the permissions that a participant has inside a room. Every one of them is then set,
// true or false. Agent stays as it is: only a token makes an agent. A nil permission changes nothing.
func (v *VideoGrant) UpdateFromPermission(p *livekit.ParticipantPermission) {
	if p == nil {
		return
	}
	v.SetCanPublish(p.GetCanPublish())
	v.SetCanSubscribe(p.GetCanSubscribe())
	v.SetCanPublishData(p.GetCanPublishData())
	v.SetCanPublishSources(p.GetCanPublishSources())
	v.SetCanUpdateOwnMetadata(p.GetCanUpdateMetadata())
	v.SetCanSubscribeMetrics(p.GetCanSubscribeMetrics())
	v.SetCanManageAgentSession(p.GetCanManageAgentSession())
	v.Hidden = p.GetHidden()
	v.Recorder, _ = deprecated(p)
}

// MatchesPermission tells whether the grant means just these permissions. Agent is not compared. It is false for nil.
func (v *VideoGrant) MatchesPermission(p *livekit.ParticipantPermission) bool {
	if p == nil {
		return false
	}
	mine := v.ToPermission()
	myRecorder, _ := deprecated(mine)
	recorder, _ := deprecated(p)
	return mine.GetCanPublish() == p.GetCanPublish() &&
		mine.GetCanSubscribe() == p.GetCanSubscribe() &&
		mine.GetCanPublishData() == p.GetCanPublishData() &&
		slices.Equal(mine.GetCanPublishSources(), p.GetCanPublishSources()) &&
		mine.GetCanUpdateMetadata() == p.GetCanUpdateMetadata() &&
		mine.GetCanSubscribeMetrics() == p.GetCanSubscribeMetrics() &&
		mine.GetCanManageAgentSession() == p.GetCanManageAgentSession() &&
		mine.GetHidden() == p.GetHidden() &&
		myRecorder == recorder
}

// setDeprecated and deprecated are the only places that use two fields of the message that the schema calls deprecated:
// servers still go by them, and a token grants nothing else of the kind.
func setDeprecated(p *livekit.ParticipantPermission, recorder, agent bool) {
	//lint:ignore SA1019 see above
	p.Recorder, p.Agent = recorder, agent
}

func deprecated(p *livekit.ParticipantPermission) (recorder, agent bool) {
	//lint:ignore SA1019 see above
	return p.GetRecorder(), p.GetAgent()
}
