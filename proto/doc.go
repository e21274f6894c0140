// Package proto holds the schema of LiveKit's server APIs as .proto files, one an area; package livekit beneath it is the Go code
// generated from them. With protoc, map the import root to this folder: protoc -I lkrpc=proto lkrpc/room.proto.
//
// After a change to a .proto file run go generate ./proto and commit what it writes. It needs Go alone.
package proto

//go:generate go run -C gen .
