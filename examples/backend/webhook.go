package main

import (
	"context"
	"net/http"

	"github.com/lkrpc/lkrpc/proto/livekit"
)

// onEvent hears of what happens in rooms, from webhooks that were verified. An error would have LiveKit send the event again.
func (s *service) onEvent(ctx context.Context, event *livekit.WebhookEvent) error {
	if event.GetEvent() != "room_finished" {
		s.log.DebugContext(ctx, "event", "event", event.GetEvent(), "event_id", event.GetId(), "room", event.GetRoom().GetName())
		return nil
	}
	ended := s.calls.finish(event)
	s.log.InfoContext(ctx, "room finished", "event_id", event.GetId(), "room", event.GetRoom().GetName(), "call_ended", ended)
	return nil
}

// onRefused hears of webhooks that are not LiveKit's, or not for this key.
func (s *service) onRefused(r *http.Request, err error) {
	s.log.WarnContext(r.Context(), "webhook refused", "remote", r.RemoteAddr, "error", err.Error())
}
