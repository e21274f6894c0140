package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lkrpc/lkrpc/failover"
)

const (
	keyHeader = "Idempotency-Key"

	maxBody     = 64 << 10 // bytes of a request: JSON may write a byte of the fields as six
	maxName     = 256      // bytes of a name: what livekit-server takes by default
	maxMetadata = 8 << 10  // bytes
)

// callRequest is the body of POST /calls.
type callRequest struct {
	Room      string `json:"room"`
	Identity  string `json:"identity"`   // who will join
	AgentName string `json:"agent_name"` // empty: the service's own
	Metadata  string `json:"metadata"`   // for the agent's job, if it is dispatched by this request
}

// idempotencyKey returns the request's key, "" if there is none. What is a key here is what can be a request id of LiveKit.
func idempotencyKey(r *http.Request) (string, error) {
	switch keys := r.Header.Values(keyHeader); {
	case len(keys) == 0:
		return "", nil
	case len(keys) > 1:
		return "", invalid("%s is there %d times", keyHeader, len(keys))
	case failover.CheckRequestID(keys[0]) != nil:
		return "", invalid("%s: want 1 to 128 visible ASCII characters", keyHeader)
	default:
		return keys[0], nil
	}
}

// readCall reads and checks the body. Every error is a *failure.
func readCall(w http.ResponseWriter, r *http.Request, agentName string) (callRequest, error) {
	var req callRequest
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return req, &failure{status: http.StatusUnsupportedMediaType, Message: "want Content-Type: application/json"}
	}
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	body.DisallowUnknownFields()
	err := body.Decode(&req)
	if err == nil {
		if _, err = body.Token(); err == io.EOF {
			err = nil
		} else if err == nil {
			err = errors.New("something follows it")
		}
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return req, &failure{status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the body is larger than %d bytes", maxBody)}
	case err != nil:
		return req, invalid("the body is not the JSON object that is wanted: %v", err)
	}
	if req.AgentName == "" {
		req.AgentName = agentName
	}
	names := []struct{ field, value string }{{"room", req.Room}, {"identity", req.Identity}, {"agent_name", req.AgentName}}
	for _, name := range names {
		if err := checkName(name.field, name.value); err != nil {
			return req, err
		}
	}
	if len(req.Metadata) > maxMetadata {
		return req, invalid("metadata has %d bytes; at most %d", len(req.Metadata), maxMetadata)
	}
	return req, nil
}

// checkName accepts names of any script, but none that two people would read alike because of blanks or what cannot be seen.
func checkName(field, name string) error {
	switch {
	case name == "":
		return invalid("%s is missing", field)
	case len(name) > maxName:
		return invalid("%s has %d bytes; at most %d", field, len(name), maxName)
	case strings.TrimSpace(name) != name:
		return invalid("%s begins or ends with white space", field)
	case strings.ContainsRune(name, utf8.RuneError):
		return invalid("%s is not UTF-8", field)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return invalid("%s has a character that cannot be printed", field)
	}
	return nil
}
