package lkrpc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"google.golang.org/protobuf/proto"
)

// methodName is a method as Twirp's context names it, without the package.
type methodName struct{ service, method string }

func (n methodName) String() string { return n.service + "/" + n.method }

// reads reports whether a method only reads, which its name tells: nothing that it does can have taken effect.
func (n methodName) reads() bool {
	for _, verb := range [...]string{"List", "Get", "Search", "Count"} {
		if strings.HasPrefix(n.method, verb) {
			return true
		}
	}
	return false
}

// method is what the client knows of a method beside its messages.
type method struct {
	grant    grant
	repeat   failover.Repeat
	overtake bool                      // its ids derive from the request id: a slow attempt may run on beside the next
	time     func(proto.Message) floor // nil: the call has no time floor of its own
}

// grant names the permission that a method needs. The token of a call holds it and nothing else.
type grant uint8

const (
	noGrant grant = iota
	roomCreate
	roomCreateIn // with the room's name
	roomList
	roomRecord
	roomAdminIn // of the named room
	roomAdminTo // of the named room, with the name of a second one
	ingressAdmin
	sipAdmin
	sipCall
	sipTransfer // sipCall, and roomAdminIn
	agentAdmin
	simulationAdmin
)

const (
	safe  = failover.Safe
	keyed = failover.Keyed
	once  = failover.Once
)

// methods has one row for each of LiveKit's methods. A method that is missing here could not be called.
//
// Safe: again is the same as once. Keyed: it creates something. Once: a person or another system notices each time.
var methods = map[methodName]method{
	{"AgentDispatchService", "CreateDispatch"}: {grant: roomAdminIn, repeat: keyed, overtake: true},
	{"AgentDispatchService", "DeleteDispatch"}: {grant: roomAdminIn, repeat: safe},
	{"AgentDispatchService", "ListDispatch"}:   {grant: roomAdminIn, repeat: safe},

	{"AgentSimulation", "CancelSimulationRun"}:           {grant: simulationAdmin, repeat: safe},
	{"AgentSimulation", "ConfirmSimulationSourceUpload"}: {grant: simulationAdmin, repeat: keyed},
	{"AgentSimulation", "CountSimulationRuns"}:           {grant: simulationAdmin, repeat: safe},
	{"AgentSimulation", "CreateScenarioFromSession"}:     {grant: simulationAdmin, repeat: keyed},
	{"AgentSimulation", "CreateSimulationRun"}:           {grant: simulationAdmin, repeat: keyed},
	{"AgentSimulation", "GetSimulationRun"}:              {grant: simulationAdmin, repeat: safe},
	{"AgentSimulation", "ListSimulationRuns"}:            {grant: simulationAdmin, repeat: safe},

	{"CloudAgent", "CreateAgent"}:          {grant: agentAdmin, repeat: keyed},
	{"CloudAgent", "CreateAgentV2"}:        {grant: agentAdmin, repeat: keyed},
	{"CloudAgent", "CreatePrivateLink"}:    {grant: agentAdmin, repeat: keyed},
	{"CloudAgent", "DeleteAgent"}:          {grant: agentAdmin, repeat: safe},
	{"CloudAgent", "DeployAgent"}:          {grant: agentAdmin, repeat: keyed},
	{"CloudAgent", "DeployAgentV2"}:        {grant: agentAdmin, repeat: keyed},
	{"CloudAgent", "DestroyPrivateLink"}:   {grant: agentAdmin, repeat: safe},
	{"CloudAgent", "GetClientSettings"}:    {grant: agentAdmin, repeat: safe},
	{"CloudAgent", "GetPrivateLinkStatus"}: {grant: agentAdmin, repeat: safe},
	{"CloudAgent", "ListAgentSecrets"}:     {grant: agentAdmin, repeat: safe},
	{"CloudAgent", "ListAgentVersions"}:    {grant: agentAdmin, repeat: safe},
	{"CloudAgent", "ListAgents"}:           {grant: agentAdmin, repeat: safe},
	{"CloudAgent", "ListPrivateLinks"}:     {grant: agentAdmin, repeat: safe},
	{"CloudAgent", "PromoteAgent"}:         {grant: agentAdmin, repeat: keyed},
	{"CloudAgent", "RestartAgent"}:         {grant: agentAdmin, repeat: keyed},
	{"CloudAgent", "RollbackAgent"}:        {grant: agentAdmin, repeat: keyed},
	{"CloudAgent", "UpdateAgent"}:          {grant: agentAdmin, repeat: safe},
	{"CloudAgent", "UpdateAgentSecrets"}:   {grant: agentAdmin, repeat: safe},

	{"Connector", "AcceptWhatsAppCall"}:     {grant: roomCreateIn, repeat: once, time: whatsAppTime},
	{"Connector", "ConnectTwilioCall"}:      {grant: roomCreateIn, repeat: once},
	{"Connector", "ConnectWhatsAppCall"}:    {grant: roomCreate, repeat: once},
	{"Connector", "DialWhatsAppCall"}:       {grant: roomCreateIn, repeat: once},
	{"Connector", "DisconnectWhatsAppCall"}: {grant: roomCreate, repeat: once},

	{"Egress", "ListEgress"}:                {grant: roomRecord, repeat: safe},
	{"Egress", "StartEgress"}:               {grant: roomRecord, repeat: keyed},
	{"Egress", "StartParticipantEgress"}:    {grant: roomRecord, repeat: keyed},
	{"Egress", "StartRoomCompositeEgress"}:  {grant: roomRecord, repeat: keyed},
	{"Egress", "StartTrackCompositeEgress"}: {grant: roomRecord, repeat: keyed},
	{"Egress", "StartTrackEgress"}:          {grant: roomRecord, repeat: keyed},
	{"Egress", "StartWebEgress"}:            {grant: roomRecord, repeat: keyed},
	{"Egress", "StopEgress"}:                {grant: roomRecord, repeat: safe},
	{"Egress", "UpdateLayout"}:              {grant: roomRecord, repeat: safe},
	{"Egress", "UpdateStream"}:              {grant: roomRecord, repeat: safe},

	{"Ingress", "CreateIngress"}: {grant: ingressAdmin, repeat: keyed, overtake: true},
	{"Ingress", "DeleteIngress"}: {grant: ingressAdmin, repeat: safe},
	{"Ingress", "ListIngress"}:   {grant: ingressAdmin, repeat: safe},
	{"Ingress", "UpdateIngress"}: {grant: ingressAdmin, repeat: safe},

	{"PhoneNumberService", "GetPhoneNumber"}:      {grant: sipAdmin, repeat: safe},
	{"PhoneNumberService", "ListPhoneNumbers"}:    {grant: sipAdmin, repeat: safe},
	{"PhoneNumberService", "PurchasePhoneNumber"}: {grant: sipAdmin, repeat: once},
	{"PhoneNumberService", "ReleasePhoneNumbers"}: {grant: sipAdmin, repeat: safe},
	{"PhoneNumberService", "SearchPhoneNumbers"}:  {grant: sipAdmin, repeat: safe},
	{"PhoneNumberService", "UpdatePhoneNumber"}:   {grant: sipAdmin, repeat: safe},

	{"RoomService", "CreateRoom"}:          {grant: roomCreate, repeat: safe},
	{"RoomService", "DeleteRoom"}:          {grant: roomCreate, repeat: safe},
	{"RoomService", "ForwardParticipant"}:  {grant: roomAdminTo, repeat: once},
	{"RoomService", "GetParticipant"}:      {grant: roomAdminIn, repeat: safe},
	{"RoomService", "ListParticipants"}:    {grant: roomAdminIn, repeat: safe},
	{"RoomService", "ListRooms"}:           {grant: roomList, repeat: safe},
	{"RoomService", "MoveParticipant"}:     {grant: roomAdminTo, repeat: once},
	{"RoomService", "MutePublishedTrack"}:  {grant: roomAdminIn, repeat: safe},
	{"RoomService", "PerformRpc"}:          {grant: roomAdminIn, repeat: once, time: rpcTime},
	{"RoomService", "RemoveParticipant"}:   {grant: roomAdminIn, repeat: safe},
	{"RoomService", "SendData"}:            {grant: roomAdminIn, repeat: keyed},
	{"RoomService", "UpdateParticipant"}:   {grant: roomAdminIn, repeat: safe},
	{"RoomService", "UpdateRoomMetadata"}:  {grant: roomAdminIn, repeat: safe},
	{"RoomService", "UpdateSubscriptions"}: {grant: roomAdminIn, repeat: safe},

	{"SIP", "CreateSIPDispatchRule"}:  {grant: sipAdmin, repeat: keyed},
	{"SIP", "CreateSIPInboundTrunk"}:  {grant: sipAdmin, repeat: keyed},
	{"SIP", "CreateSIPOutboundTrunk"}: {grant: sipAdmin, repeat: keyed},
	{"SIP", "CreateSIPParticipant"}:   {grant: sipCall, repeat: once, time: sipTime},
	{"SIP", "DeleteSIPDispatchRule"}:  {grant: sipAdmin, repeat: safe},
	{"SIP", "DeleteSIPTrunk"}:         {grant: sipAdmin, repeat: safe},
	{"SIP", "GetSIPInboundTrunk"}:     {grant: sipAdmin, repeat: safe},
	{"SIP", "GetSIPOutboundTrunk"}:    {grant: sipAdmin, repeat: safe},
	{"SIP", "ListSIPDispatchRule"}:    {grant: sipAdmin, repeat: safe},
	{"SIP", "ListSIPInboundTrunk"}:    {grant: sipAdmin, repeat: safe},
	{"SIP", "ListSIPOutboundTrunk"}:   {grant: sipAdmin, repeat: safe},
	{"SIP", "ListSIPTrunk"}:           {grant: sipAdmin, repeat: safe},
	{"SIP", "TransferSIPParticipant"}: {grant: sipTransfer, repeat: once, time: transferTime},
	{"SIP", "UpdateSIPDispatchRule"}:  {grant: sipAdmin, repeat: safe},
	{"SIP", "UpdateSIPInboundTrunk"}:  {grant: sipAdmin, repeat: safe},
	{"SIP", "UpdateSIPOutboundTrunk"}: {grant: sipAdmin, repeat: safe},
}

// claims returns the grants that a token needs for the request.
func (g grant) claims(req proto.Message) (*auth.ClaimGrants, error) {
	switch g {
	case roomCreate:
		return video(&auth.VideoGrant{RoomCreate: true}), nil
	case roomCreateIn:
		return video(&auth.VideoGrant{RoomCreate: true, Room: roomOf(req)}), nil
	case roomList:
		return video(&auth.VideoGrant{RoomList: true}), nil
	case roomRecord:
		return video(&auth.VideoGrant{RoomRecord: true}), nil
	case ingressAdmin:
		return video(&auth.VideoGrant{IngressAdmin: true}), nil
	case sipAdmin:
		return &auth.ClaimGrants{SIP: &auth.SIPGrant{Admin: true}}, nil
	case sipCall:
		return &auth.ClaimGrants{SIP: &auth.SIPGrant{Call: true}}, nil
	case agentAdmin:
		return &auth.ClaimGrants{Agent: &auth.AgentGrant{Admin: true}}, nil
	case simulationAdmin:
		return &auth.ClaimGrants{Agent: &auth.AgentGrant{SimulationAdmin: true}}, nil
	case roomAdminIn, roomAdminTo, sipTransfer:
		return g.roomClaims(req)
	}
	return nil, fmt.Errorf("no grant is known for a %s", req.ProtoReflect().Descriptor().Name())
}

// roomClaims returns grants that hold for one room, which the request must name.
func (g grant) roomClaims(req proto.Message) (*auth.ClaimGrants, error) {
	v := &auth.VideoGrant{RoomAdmin: true, Room: roomOf(req)}
	if v.Room == "" {
		return nil, fmt.Errorf("the request names no room: set %s", roomField(req))
	}
	switch g {
	case roomAdminTo:
		if to, ok := req.(interface{ GetDestinationRoom() string }); ok {
			v.DestinationRoom = to.GetDestinationRoom()
		}
		if v.DestinationRoom == "" {
			return nil, errors.New("the request names no second room: set DestinationRoom")
		}
	case sipTransfer:
		return &auth.ClaimGrants{Video: v, SIP: &auth.SIPGrant{Call: true}}, nil
	}
	return video(v), nil
}

func video(v *auth.VideoGrant) *auth.ClaimGrants { return &auth.ClaimGrants{Video: v} }

// roomOf returns the name of the room that a request is about.
func roomOf(req proto.Message) string {
	switch r := req.(type) {
	case interface{ GetRoom() string }:
		return r.GetRoom()
	case interface{ GetRoomName() string }:
		return r.GetRoomName()
	}
	return ""
}

// roomField is the Go name of the field that roomOf reads.
func roomField(req proto.Message) string {
	if _, ok := req.(interface{ GetRoom() string }); ok {
		return "Room"
	}
	return "RoomName"
}
