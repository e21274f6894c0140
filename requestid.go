package lkrpc

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/lkrpc/lkrpc/failover"
	"google.golang.org/protobuf/proto"
)

type requestIDKey struct{}

// WithRequestID gives the calls made with the context an idempotency key of the caller's, 1 to 128 visible ASCII characters,
// sent as X-Livekit-Request-Id. LiveKit Cloud answers a repeated create with the same key like the first, so a caller that
// retries, or starts anew, with the same key and the same request does not create a second dispatch, egress or ingress. To make a
// call again that had none, take the RequestID of its [Error].
//
// It is no such key for calls that somebody notices, such as CreateSIPParticipant, TransferSIPParticipant and PerformRpc. They carry
// it, but LiveKit is not known to recognise it: a call made again may let the phone ring again. Look first.
//
// The key counts for one method and one request: using it again with the same is the caller's own retry, with another it is an
// error (invalid_argument) and nothing is sent. The Client remembers the last few thousand keys for that. Calls that need no
// key (lists, deletes, updates, CreateRoom) ignore it and get ids of their own; so does every call without a key.
// [Client.EnsureDispatch] sends it with the CreateDispatch that it makes where the room exists already.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

func requestID(ctx context.Context) (id string, ok bool) {
	id, ok = ctx.Value(requestIDKey{}).(string)
	return id, ok
}

// rememberedIDs is how many request ids a Client keeps. At 64 bytes of id that is about half a megabyte.
const rememberedIDs = 4096

// usedIDs remembers what the caller's request ids were used for. Safe for concurrent use.
type usedIDs struct {
	mu   sync.Mutex
	uses map[string]idUse
	ring []string // the ids in order of first use; the oldest is overwritten
	next int
}

type idUse struct {
	method methodName
	digest [sha256.Size]byte
}

// use records that id goes out with this request, or says why it must not.
func (u *usedIDs) use(id string, m methodName, req proto.Message) error {
	if err := failover.CheckRequestID(id); err != nil {
		return err
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return fmt.Errorf("the request cannot be encoded: %w", err)
	}
	now := idUse{m, sha256.Sum256(body)}

	u.mu.Lock()
	defer u.mu.Unlock()
	if before, ok := u.uses[id]; ok {
		switch {
		case before.method != m:
			return fmt.Errorf("request id %q was used for %s before: take a new one for each call", id, before.method)
		case before.digest != now.digest:
			return fmt.Errorf("request id %q was used for another request before: take a new one for each request", id)
		}
		return nil
	}
	if u.uses == nil {
		u.uses = make(map[string]idUse)
	}
	if len(u.ring) < rememberedIDs {
		u.ring = append(u.ring, id)
	} else {
		delete(u.uses, u.ring[u.next])
		u.ring[u.next] = id
		u.next = (u.next + 1) % rememberedIDs
	}
	u.uses[id] = now
	return nil
}
