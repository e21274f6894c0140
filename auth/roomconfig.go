package auth

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// RoomConfiguration is the API's message as a claim: its JSON is protobuf's, with only the fields that are set. Convert from and
// to *livekit.RoomConfiguration.
type RoomConfiguration livekit.RoomConfiguration

func (c *RoomConfiguration) message() *livekit.RoomConfiguration {
	return (*livekit.RoomConfiguration)(c)
}

// Clone returns a copy that shares nothing with c; it is nil for nil.
func (c *RoomConfiguration) Clone() *RoomConfiguration {
	if c == nil {
		return nil
	}
	return (*RoomConfiguration)(proto.CloneOf(c.message()))
}

// MarshalJSON writes protobuf JSON.
func (c *RoomConfiguration) MarshalJSON() ([]byte, error) {
	return protojson.Marshal(c.message())
}

// UnmarshalJSON reads protobuf JSON. Fields and enum values that are unknown here are skipped: they are of a later LiveKit.
func (c *RoomConfiguration) UnmarshalJSON(data []byte) error {
	return readJSON(data, c.message())
}

// readJSON reads protobuf JSON. Its error says where something is wrong, and in what field, but not what stands there: it may be a
// secret.
func readJSON(data []byte, m proto.Message) error {
	err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, m)
	if err == nil {
		return nil
	}
	where, what, ok := strings.Cut(err.Error(), "): ")
	if !ok {
		return err // "unexpected EOF"
	}
	if field, _, ok := strings.Cut(what, ": "); ok && strings.HasPrefix(field, "invalid value for ") {
		return errors.New(where + "): " + field)
	}
	return errors.New(where + "): it is not JSON of this kind")
}

// CheckCredentials returns ErrSensitiveCredentials if the configuration holds something that no participant should read:
// secrets of S3, GCP, Azure or AliOSS storage, the password of a proxy, the destinations of a stream (their URLs have the stream
// key). The error names the field.
func (c *RoomConfiguration) CheckCredentials() error {
	if c == nil {
		return nil
	}
	if path, found := firstSecret(c.message()); found {
		return fmt.Errorf("%w: roomConfig.%s: whoever holds the token could read it; SetAllowSensitiveCredentials(true) is for tokens"+
			" that stay on servers", ErrSensitiveCredentials, path)
	}
	return nil
}

// hideSecrets returns the configuration without its secrets: itself if it has none.
func (c *RoomConfiguration) hideSecrets() *RoomConfiguration {
	if c.CheckCredentials() == nil {
		return c
	}
	shown := c.Clone()
	for _, hide := range secretsIn(shown.message()) {
		hide()
	}
	return shown
}

// String returns protobuf JSON with secrets hidden.
func (c *RoomConfiguration) String() string {
	if c == nil {
		return "<nil>"
	}
	text, err := protojson.Marshal(c.hideSecrets().message())
	if err != nil {
		return "a room configuration that cannot be written: " + err.Error()
	}
	return string(text)
}

// Format prints String for every verb.
func (c *RoomConfiguration) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// LogValue logs String.
func (c *RoomConfiguration) LogValue() slog.Value { return slog.StringValue(c.String()) }
