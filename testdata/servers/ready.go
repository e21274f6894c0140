package servers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// client uses no proxy and keeps no connection, so that nothing of it outlives the check.
var client = &http.Client{
	Transport: &http.Transport{DisableKeepAlives: true},
	Timeout:   10 * time.Second,
}

func allReady(ctx context.Context, ports []int, secret string) error {
	for _, port := range ports {
		if err := ready(ctx, localURL(port), secret); err != nil {
			return err
		}
	}
	return nil
}

// ready asks a server for its health, and then for its rooms: it answers with them only if the secret is its own. Another
// server that has the port by chance is not taken for ours.
func ready(ctx context.Context, url, secret string) error {
	health, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/", nil)
	if err != nil {
		return err
	}
	if err := expectOK(health); err != nil {
		return err
	}
	rooms, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/twirp/livekit.RoomService/ListRooms", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	rooms.Header.Set("Content-Type", "application/json")
	rooms.Header.Set("Authorization", "Bearer "+listToken(secret))
	return expectOK(rooms)
}

func expectOK(req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", req.Method, req.URL, resp.Status, body)
	}
	return nil
}

// listToken is an access token that allows to list rooms. It is made by hand, so that this package stands on nothing that is
// tested with it.
func listToken(secret string) string {
	claims, err := json.Marshal(map[string]any{
		"iss":   key,
		"exp":   time.Now().Add(time.Minute).Unix(),
		"video": map[string]bool{"roomList": true},
	})
	if err != nil {
		panic(err) // strings, a number and a bool
	}
	enc := base64.RawURLEncoding
	signed := enc.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + enc.EncodeToString(mac.Sum(nil))
}
