package auth

import (
	"strings"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// enum has the values of one of the API's enums by the names of the schema, which tokens have in lower case.
type enum[E ~int32] map[string]int32

var (
	kinds       = enum[livekit.ParticipantInfo_Kind](livekit.ParticipantInfo_Kind_value)
	kindDetails = enum[livekit.ParticipantInfo_KindDetail](livekit.ParticipantInfo_KindDetail_value)
	sources     = enum[livekit.TrackSource](livekit.TrackSource_value)
)

// parse returns the value of a name, zero for one that is unknown.
func (e enum[E]) parse(name string) (E, bool) {
	value, ok := e[strings.ToUpper(name)]
	return E(value), ok
}
