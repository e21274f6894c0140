package lkrpc

// Version is the version of this module, by semantic versioning. It equals the newest version in CHANGELOG.md and is sent as
// "User-Agent: lkrpc/<version>", unless WithHeader or a call's own headers say otherwise.
const Version = "0.1.0"
