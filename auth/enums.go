package auth

import (
	"strings"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// enum gives the values of one of the API's enums the names that they have in tokens: those of the schema, in lower case.
type enum[E ~int32] struct {
	names  map[int32]string
	values map[string]int32
}

var (
	kinds       = enum[livekit.ParticipantInfo_Kind]{livekit.ParticipantInfo_Kind_name, livekit.ParticipantInfo_Kind_value}
	kindDetails = enum[livekit.ParticipantInfo_KindDetail]{livekit.ParticipantInfo_KindDetail_name, livekit.ParticipantInfo_KindDetail_value}
	sources     = enum[livekit.TrackSource]{livekit.TrackSource_name, livekit.TrackSource_value}
)

func (e enum[E]) name(value E) (string, bool) {
	name, ok := e.names[int32(value)]
	return strings.ToLower(name), ok
}

// parse returns the value of a name, zero for one that is unknown.
func (e enum[E]) parse(name string) (E, bool) {
	value, ok := e.values[strings.ToUpper(name)]
	return E(value), ok
}
