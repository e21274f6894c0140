package cloud

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// claims are those of a token that the fake cloud makes or looks at.
type claims struct {
	Issuer    string `json:"iss"`
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`
	Video     struct {
		Room      string `json:"room"`
		RoomAdmin bool   `json:"roomAdmin"`
	} `json:"video"`
}

var encoding = base64.RawURLEncoding

// newToken makes a token that may dispatch in a room, for an hour.
func newToken(key, secret, room string) (string, error) {
	c := claims{Issuer: key, NotBefore: time.Now().Unix(), Expires: time.Now().Add(time.Hour).Unix()}
	c.Video.Room, c.Video.RoomAdmin = room, true
	body, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed := encoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encoding.EncodeToString(body)
	return signed + "." + sign(secret, signed), nil
}

func sign(secret, text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return encoding.EncodeToString(mac.Sum(nil))
}

// checkToken says what is wrong with a token for a room.
func checkToken(raw, key, secret, room string) error {
	end := strings.LastIndexByte(raw, '.')
	_, payload, _ := strings.Cut(raw[:max(end, 0)], ".")
	if payload == "" {
		return fmt.Errorf("no token")
	}
	if !hmac.Equal([]byte(raw[end+1:]), []byte(sign(secret, raw[:end]))) {
		return fmt.Errorf("a token with a wrong signature")
	}
	body, err := encoding.DecodeString(payload)
	if err != nil {
		return err
	}
	var c claims
	if err := json.Unmarshal(body, &c); err != nil {
		return err
	}
	if c.Issuer != key || !c.Video.RoomAdmin || c.Video.Room != room || c.Expires < time.Now().Unix() {
		return fmt.Errorf("a token of %q for room %q", c.Issuer, c.Video.Room)
	}
	return nil
}
