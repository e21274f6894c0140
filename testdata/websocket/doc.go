// Package sockets tests the RTC connections of package failover with the WebSocket libraries that Go programs use:
// coder/websocket and gorilla/websocket, against the test-server that LiveKit's own SDKs are tested against, livekit-server and
// the Cloud of package cloudtest.
package sockets
