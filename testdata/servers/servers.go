// Package servers runs real LiveKit servers for tests: livekit-server, and the test-server that LiveKit's own SDKs are tested
// against. Each is built from its public module on first use, listens on free loopback ports, and ends with its test.
//
// A server that cannot be built or started fails the test. The package needs the go command and nothing but the standard
// library, so that any module here can import it.
package servers

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// key is the API key of every server that this package starts. The secret is a new one each time, so that a server which
// accepts it is known to be ours.
const key = "lkrpc-test"

// LiveKitServer is a running livekit-server.
type LiveKitServer struct {
	URL    string // http://127.0.0.1:port
	Key    string // API key
	Secret string // API secret
}

// LiveKit starts a livekit-server of its own for a test and returns when it answers. It ends with the test; the log of a
// failed test shows the server's.
func LiveKit(t testing.TB, opts ...Option) LiveKitServer {
	t.Helper()
	s := LiveKitServer{Key: key, Secret: rand.Text()}
	ports := launch(t, program{
		name:   "livekit-server",
		secret: s.Secret,
		ports:  []string{"tcp", "tcp", "udp"},
		http:   1,
		command: func(ports []int) (args, env []string) {
			return nil, []string{"LIVEKIT_CONFIG=" + config(s.Secret, ports[0], ports[1], ports[2], opts)}
		},
	})
	s.URL = localURL(ports[0])
	return s
}

// Option changes the configuration of a livekit-server.
type Option func(yaml *strings.Builder)

// Config adds top-level sections to the configuration, in YAML. Sections that it has already (port, bind_addresses, keys,
// rtc, logging) keep the server from starting.
func Config(yaml string) Option {
	return func(b *strings.Builder) { b.WriteString(strings.TrimSpace(yaml) + "\n") }
}

// Webhooks has the server send its webhooks to these URLs, signed with its key.
func Webhooks(urls ...string) Option {
	return func(b *strings.Builder) {
		fmt.Fprintf(b, "webhook:\n  api_key: %s\n  urls:\n", key)
		for _, u := range urls {
			fmt.Fprintf(b, "    - %q\n", u)
		}
	}
}

// config keeps all of the server on loopback: without use_external_ip it asks no STUN server for its address.
func config(secret string, port, rtcTCP, rtcUDP int, opts []Option) string {
	var b strings.Builder
	fmt.Fprintf(&b, `port: %d
bind_addresses: [127.0.0.1]
keys: {%s: %s}
rtc: {tcp_port: %d, udp_port: %d, node_ip: 127.0.0.1, use_external_ip: false, enable_loopback_candidate: true}
logging: {level: info}
`, port, key, secret, rtcTCP, rtcUDP)
	for _, opt := range opts {
		opt(&b)
	}
	return b.String()
}

// MockServer is a running test-server.
type MockServer struct {
	URLs   []string // http://127.0.0.1:port of each region in the order of its region list; the first is the primary
	Key    string   // API key; the test-server takes any
	Secret string   // API secret
}

// TestServer starts a test-server with as many regions, region-0 onwards, and returns when all of them answer. It ends with
// the test; the log of a failed test shows the server's.
func TestServer(t testing.TB, regions int) MockServer {
	t.Helper()
	if regions < 1 {
		t.Fatalf("servers.TestServer: %d regions; it needs one at least", regions)
	}
	s := MockServer{Key: key, Secret: rand.Text()}
	ports := launch(t, program{
		name:   "test-server",
		secret: s.Secret,
		ports:  slices.Repeat([]string{"tcp"}, regions),
		http:   regions,
		command: func(ports []int) (args, env []string) {
			list := make([]string, len(ports))
			for i, port := range ports {
				list[i] = strconv.Itoa(port)
			}
			return []string{"--bind", loopback, "--advertise-host", "http://" + loopback,
				"--ports", strings.Join(list, ","), "--api-secret", s.Secret}, nil
		},
	})
	for _, port := range ports {
		s.URLs = append(s.URLs, localURL(port))
	}
	return s
}
