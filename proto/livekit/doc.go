// Package livekit is the Go code of LiveKit's server APIs, generated from the .proto files in the folder above: a message type and
// its enums for each message, and for each service an interface with a Twirp client and server.
//
// The messages are those of LiveKit to the last field, on the wire and in protobuf JSON, but they are registered in Registry and
// not in the global registry. To read or write one of them inside an Any as JSON or text, give Registry as Resolver in the options.
package livekit
