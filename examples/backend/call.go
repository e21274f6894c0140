package main

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

const (
	// callTime is the time of a request to make a call. It leaves room for a region that answers nothing any more: an attempt
	// waits 5 s for an answer before another region is asked.
	callTime = 20 * time.Second
	// tokenLifetime is how long a token can be used to join. Who has joined stays: LiveKit renews the tokens of participants.
	tokenLifetime = 10 * time.Minute
)

// callAnswer is the answer to POST /calls.
type callAnswer struct {
	Token      string `json:"token"`       // the participant's, to join the room with
	URL        string `json:"url"`         // of the server to join
	DispatchID string `json:"dispatch_id"` // of the agent
	Created    bool   `json:"created"`     // this request dispatched the agent; false: it was there
}

// postCall sees to it that an agent is in the room, and gives the participant a token.
func (s *service) postCall(w http.ResponseWriter, r *http.Request) {
	answer, err := s.makeCall(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store") // it holds a token
	writeJSON(w, http.StatusOK, answer)
}

func (s *service) makeCall(w http.ResponseWriter, r *http.Request) (callAnswer, error) {
	key, err := idempotencyKey(r)
	if err != nil {
		return callAnswer{}, err
	}
	req, err := readCall(w, r, s.cfg.agentName)
	if err != nil {
		return callAnswer{}, err
	}
	token, err := s.token(req) // first, since it needs nobody
	if err != nil {
		return callAnswer{}, err
	}
	if err := s.calls.claim(key, req); err != nil {
		return callAnswer{}, err
	}
	d, created, err := s.ensureAgent(r.Context(), req)
	if err != nil {
		return callAnswer{}, err
	}
	s.calls.begin(key, d)
	s.log.InfoContext(r.Context(), "call", "room", req.Room, "identity", req.Identity, "agent", req.AgentName,
		"dispatch", d.GetId(), "created", created)
	return callAnswer{Token: token, URL: s.cfg.serverURL, DispatchID: d.GetId(), Created: created}, nil
}

// token lets the participant join the room, and nothing else.
func (s *service) token(req callRequest) (string, error) {
	return auth.NewAccessToken(s.cfg.apiKey, s.cfg.keys.GetSecret(s.cfg.apiKey)).
		SetIdentity(req.Identity).
		SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: req.Room}).
		SetValidFor(tokenLifetime).
		ToJWT()
}

// ensureAgent asks for the agent under the id of the request, so that a retry with the same Idempotency-Key is a retry for
// LiveKit too, and so that the logs of both sides name the same id.
func (s *service) ensureAgent(ctx context.Context, req callRequest) (*livekit.AgentDispatch, bool, error) {
	ctx, cancel := context.WithTimeout(lkrpc.WithRequestID(ctx, requestID(ctx)), callTime)
	defer cancel()
	d, created, err := s.client.EnsureDispatch(ctx, &livekit.CreateAgentDispatchRequest{
		Room: req.Room, AgentName: req.AgentName, Metadata: req.Metadata,
	})
	s.metrics.dispatch(created, err)
	return d, created, err
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // an error is the client's: it has gone
}
