package lkrpc_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
)

const (
	testKey    = "devkey"
	testSecret = "a-secret-that-is-long-enough-for-hs256"
)

// roundTripper is an http.RoundTripper made of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	return f(r)
}

// answer is a response as a server gives it.
func answer(r *http.Request, status int, contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {contentType}}, Body: http.NoBody, ContentLength: 0,
	}
}

// recorder keeps the requests that reached the transport, and answers each with an empty message.
type recorder struct {
	mu   sync.Mutex
	seen []*http.Request
}

func (rec *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	rec.mu.Lock()
	rec.seen = append(rec.seen, r)
	rec.mu.Unlock()
	return answer(r, 200, "application/protobuf", ""), nil
}

func (rec *recorder) requests() []*http.Request {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.seen
}

// last returns the one request that was made since the last call.
func (rec *recorder) last(t *testing.T) *http.Request {
	t.Helper()
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if len(rec.seen) != 1 {
		t.Fatalf("%d requests were sent, want 1", len(rec.seen))
	}
	r := rec.seen[0]
	rec.seen = nil
	return r
}

func newTestClient(t *testing.T, url string, rt http.RoundTripper, opts ...lkrpc.Option) *lkrpc.Client {
	t.Helper()
	c, err := lkrpc.New(url, auth.APIKey(testKey, testSecret), append([]lkrpc.Option{lkrpc.WithHTTPTransport(rt)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// claimsOf decodes the token of a request. Whether the token is valid is package auth's matter.
func claimsOf(t *testing.T, r *http.Request) map[string]any {
	t.Helper()
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		t.Fatalf("%d Authorization headers, want 1", len(values))
	}
	token, ok := strings.CutPrefix(values[0], "Bearer ")
	parts := strings.Split(token, ".")
	if !ok || len(parts) != 3 {
		t.Fatalf("Authorization %q is no bearer JWT", values[0])
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// load reads a table of cases.
func load(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

var background = context.Background()
