package auth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

// A token that lets ann into one room, and has an agent wait for her there.
func ExampleAccessToken() {
	token := auth.NewAccessToken("APIabcdef", "the-secret").
		SetIdentity("ann").
		SetName("Ann").
		SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: "studio"}).
		SetValidFor(15 * time.Minute)
	fmt.Println(token) // without the secret

	raw, err := token.SetAgents(&livekit.RoomAgentDispatch{AgentName: "scribe"}).ToJWT()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Count(raw, "."), "dots")
	// Output:
	// auth.AccessToken(APIabcdef, {"identity":"ann","name":"Ann","video":{"roomJoin":true,"room":"studio"}})
	// 2 dots
}

// A viewer may watch but not publish, except for a microphone later.
func ExampleVideoGrant() {
	viewer := &auth.VideoGrant{RoomJoin: true, Room: "studio"}
	viewer.SetCanPublish(false)
	fmt.Println(viewer.GetCanPublish(), viewer.GetCanPublishData(), viewer.GetCanSubscribe())

	viewer.UpdateFromPermission(&livekit.ParticipantPermission{
		CanPublish: true, CanSubscribe: true, CanPublishSources: []livekit.TrackSource{livekit.TrackSource_MICROPHONE},
	})
	fmt.Println(viewer.GetCanPublishSource(livekit.TrackSource_CAMERA), viewer.GetCanPublishSource(livekit.TrackSource_MICROPHONE))
	// Output:
	// false false true
	// false true
}

func ExampleParseAPIToken() {
	raw, err := auth.NewAccessToken("APIabcdef", "the-secret").SetIdentity("ann").ToJWT()
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := auth.ParseAPIToken(raw)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("claims to be signed with", v.APIKey())
	_, claims, err := v.Verify("the-secret")
	fmt.Println(claims.Identity, err)
	_, _, err = v.Verify("another-secret")
	fmt.Println(errors.Is(err, auth.ErrTokenSignature))
	// Output:
	// claims to be signed with APIabcdef
	// ann <nil>
	// true
}

// A handler that does each event's work once, although LiveKit may send the event twice.
func ExampleNewWebhookHandler() {
	var mu sync.Mutex
	seen := map[string]bool{} // a table with an expiry, in earnest

	handler, err := auth.NewWebhookHandler(auth.NewSimpleKeyProvider("APIabcdef", "the-secret"),
		func(_ context.Context, event *livekit.WebhookEvent) error {
			mu.Lock()
			defer mu.Unlock()
			if seen[event.GetId()] {
				return nil
			}
			seen[event.GetId()] = true
			switch event.GetEvent() {
			case "room_started":
				fmt.Println("room", event.GetRoom().GetName())
			case "participant_joined":
				fmt.Println(event.GetParticipant().GetIdentity(), "joined")
			}
			return nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}

	event := `{"id":"EV_1","event":"room_started","room":{"name":"studio"}}`
	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, exampleWebhook(event))
		fmt.Println(w.Code)
	}
	// Output:
	// room studio
	// 200
	// 200
}

func ExampleReceiveWebhook() {
	keys := auth.NewSimpleKeyProvider("APIabcdef", "the-secret")
	event, err := auth.ReceiveWebhook(exampleWebhook(`{"event":"room_finished","room":{"name":"studio"}}`), keys)
	fmt.Println(event.GetEvent(), event.GetRoom().GetName(), err)

	forged := exampleWebhook(`{"event":"room_finished","room":{"name":"studio"}}`)
	forged.Header.Set("Authorization", "forged")
	_, err = auth.ReceiveWebhook(forged, keys)
	fmt.Println(errors.Is(err, auth.ErrTokenMalformed))
	// Output:
	// room_finished studio <nil>
	// true
}

// exampleWebhook is what LiveKit sends for an event.
func exampleWebhook(event string) *http.Request {
	sum := sha256.Sum256([]byte(event))
	token, err := auth.NewAccessToken("APIabcdef", "the-secret").SetSha256(base64.StdEncoding.EncodeToString(sum[:])).ToJWT()
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest("POST", "/webhook", strings.NewReader(event))
	r.Header.Set("Authorization", token)
	r.Header.Set("Content-Type", "application/webhook+json")
	return r
}
