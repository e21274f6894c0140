// Package e2e tests lkrpc against real servers: livekit-server with real agent workers, and the test-server that LiveKit's own
// SDKs are tested against.
package e2e
