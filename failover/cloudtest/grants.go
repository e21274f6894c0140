package cloudtest

import (
	"errors"
	"net/http"
	"strings"

	"github.com/lkrpc/lkrpc/auth"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// permissionsDenied is what LiveKit's servers say, with 401, to a token that lacks a grant.
const permissionsDenied = "permissions denied"

var (
	errNoToken  = errors.New("no token: the Authorization header is missing or no bearer token")
	errBadToken = errors.New("invalid token")
	errBadKey   = errors.New("invalid API key")
)

// tokenOf returns the token of a request, "" if there is none.
func tokenOf(r *http.Request) string {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return token
	}
	if isRTC(r.URL.Path) { // browsers cannot send the header
		return r.URL.Query().Get("access_token")
	}
	return ""
}

// claims verifies the token of a request.
func (c *Cloud) claims(r *http.Request) (*auth.ClaimGrants, error) {
	token := tokenOf(r)
	if token == "" {
		return nil, errNoToken
	}
	v, err := auth.ParseAPIToken(token)
	if err != nil {
		return nil, errBadToken
	}
	if v.APIKey() != c.Key {
		return nil, errBadKey
	}
	_, claims, err := v.Verify(c.Secret)
	if err != nil {
		return nil, errBadToken
	}
	return claims, nil
}

// allows reports whether a token's grants are enough for a call.
func allows(claims *auth.ClaimGrants, call *rpc) bool {
	video, sip, agent := claims.Video, claims.SIP, claims.Agent
	if video == nil {
		video = &auth.VideoGrant{}
	}
	if sip == nil {
		sip = &auth.SIPGrant{}
	}
	if agent == nil {
		agent = &auth.AgentGrant{}
	}
	admin := video.RoomAdmin && video.Room != "" && video.Room == textOf(call.request, "room", "room_name")
	switch call.service {
	case "AgentDispatchService":
		return admin
	case "AgentSimulation":
		return agent.SimulationAdmin
	case "CloudAgent":
		return agent.Admin
	case "Connector":
		return video.RoomCreate && (video.Room == "" || video.Room == textOf(call.request, "room_name"))
	case "Egress":
		return video.RoomRecord
	case "Ingress":
		return video.IngressAdmin
	case "PhoneNumberService":
		return sip.Admin
	case "RoomService":
		switch call.method {
		case "CreateRoom", "DeleteRoom":
			return video.RoomCreate
		case "ListRooms":
			return video.RoomList
		case "ForwardParticipant", "MoveParticipant":
			return admin && video.DestinationRoom == textOf(call.request, "destination_room")
		}
		return admin
	case "SIP":
		switch call.method {
		case "CreateSIPParticipant":
			return sip.Call
		case "TransferSIPParticipant":
			return sip.Call && admin
		}
		return sip.Admin
	}
	return false
}

// textOf returns the value of the first of these fields that the message has.
func textOf(m proto.Message, fields ...protoreflect.Name) string {
	r := m.ProtoReflect()
	for _, name := range fields {
		if f := r.Descriptor().Fields().ByName(name); f != nil && f.Kind() == protoreflect.StringKind && !f.IsList() {
			return r.Get(f).String()
		}
	}
	return ""
}
