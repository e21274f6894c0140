// Package interop links this project with github.com/livekit/protocol, which has the same messages under the same names, and
// tests that each understands the other. That the tests start at all is the first thing they show: two messages of one name
// in one registry would end the program.
package interop
