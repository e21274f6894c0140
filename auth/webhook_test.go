package auth_test

import (
	"bytes"
	"compress/gzip"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

var webhookKeys = auth.NewSimpleKeyProvider(testKey, testSecret)

// webhookCase is a webhook that somebody sends.
type webhookCase struct {
	Name     string
	Body     string          // which the token is made for
	Sent     *string         // what is sent in its place
	Header   *string         // the Authorization header; nil: a token
	Scheme   string          // before the token
	Key      string          // "": testKey
	Secret   string          // "": testSecret
	Sum      *string         // the claim sha256; nil: as it should be
	Expires  json.RawMessage // in seconds from now; absent: 300; null: never
	Encoding string          // Content-Encoding
	Chunked  bool            // no Content-Length
	Max      int64           // MaxWebhookBody; 0: the default
	Error    string
	Event    string // the event's name, where there is no error
}

// authorization returns the header, made without the package under test.
func (c webhookCase) authorization(t testing.TB) string {
	if c.Header != nil {
		return *c.Header
	}
	key, secret := c.Key, c.Secret
	if key == "" {
		key = testKey
	}
	if secret == "" {
		secret = testSecret
	}
	claims := map[string]any{"iss": key, "sha256": sumOf([]byte(c.Body))}
	if c.Sum != nil {
		claims["sha256"] = *c.Sum
	}
	seconds := int64(300)
	if c.Expires != nil {
		if err := json.Unmarshal(c.Expires, &seconds); err != nil {
			t.Fatal(err)
		}
	}
	if string(c.Expires) != "null" {
		claims["exp"] = time.Now().Unix() + seconds
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return c.Scheme + mint(t, `{"alg":"HS256"}`, string(payload), secret, crypto.SHA256)
}

func sumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// signed returns the header for a body.
func signed(t testing.TB, body string) string { return webhookCase{Body: body}.authorization(t) }

func TestWebhooks(t *testing.T) {
	var cases []webhookCase
	readTable(t, "webhooks.json", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			sent := c.Body
			if c.Sent != nil {
				sent = *c.Sent
			}
			request := func() *http.Request {
				r := httptest.NewRequest("POST", "/webhook", strings.NewReader(sent))
				if c.Chunked {
					r.Body, r.ContentLength = io.NopCloser(iotest.OneByteReader(strings.NewReader(sent))), -1
				}
				if header := c.authorization(t); header != "" {
					r.Header.Set("Authorization", header)
				}
				if c.Encoding != "" {
					r.Header.Set("Content-Encoding", c.Encoding)
				}
				return r
			}
			var opts []auth.WebhookOption
			if c.Max != 0 {
				opts = append(opts, auth.MaxWebhookBody(c.Max))
			}
			event, err := auth.ReceiveWebhook(request(), webhookKeys, opts...)
			wantKind(t, err, c.Error)
			if (event == nil) != (err != nil) || event.GetEvent() != c.Event {
				t.Errorf("event is %v, want %q", event, c.Event)
			}

			body, err := auth.ReadWebhook(request(), webhookKeys, opts...)
			if c.Error == "ErrWebhookMalformed" {
				if err != nil || string(body) != sent {
					t.Errorf("ReadWebhook: %q, %v, want what was sent", body, err)
				}
			} else if wantKind(t, err, c.Error); err == nil && string(body) != sent || err != nil && body != nil {
				t.Errorf("ReadWebhook: %q, %v", body, err)
			}

			if c.Encoding != "" || c.Max != 0 { // which is about the request
				return
			}
			err = auth.VerifyWebhook(c.authorization(t), []byte(sent), webhookKeys)
			if err == nil {
				event, err = auth.ParseWebhookEvent([]byte(sent))
			}
			wantKind(t, err, c.Error)
			if err == nil && event.GetEvent() != c.Event {
				t.Errorf("in parts, the event is %v, want %q", event, c.Event)
			}
		})
	}
}

// What is known of an event is read although other things in it are not.
func TestUnknownIsSkipped(t *testing.T) {
	event, err := auth.ParseWebhookEvent([]byte(`{"event":"new_thing","id":"EV_1","createdAt":"12","later":[1],
		"participant":{"identity":"ann","state":"DREAMING","kind":"AGENT","attributes":{"k":"v"}},"roomEndReason":99}`))
	if err != nil {
		t.Fatal(err)
	}
	p := event.GetParticipant()
	if event.GetEvent() != "new_thing" || event.GetId() != "EV_1" || event.GetCreatedAt() != 12 || p.GetIdentity() != "ann" ||
		p.GetKind() != livekit.ParticipantInfo_AGENT || p.GetState() != 0 || p.GetAttributes()["k"] != "v" || event.GetRoomEndReason() != 99 {
		t.Errorf("event is %v", event)
	}
}

// counter is a body without end that counts what is read of it.
type counter struct{ read int64 }

func (c *counter) Read(p []byte) (int, error) {
	clear(p)
	c.read += int64(len(p))
	return len(p), nil
}
func (c *counter) Close() error { return nil }

// A body of 64 MiB is not read unless the header is right, and not past the limit then.
func TestLargeBodies(t *testing.T) {
	good := signed(t, "x")
	for name, c := range map[string]struct {
		header  string
		length  int64
		opts    []auth.WebhookOption
		want    string
		atMost  int64
		atLeast int64
	}{
		"junk header":                 {"junk", 64 << 20, nil, "ErrTokenMalformed", 0, 0},
		"junk header, unknown length": {"junk", -1, nil, "ErrTokenMalformed", 0, 0},
		"no header":                   {"", 64 << 20, nil, "ErrNoAuthHeader", 0, 0},
		"other secret":                {webhookCase{Secret: "another"}.authorization(t), -1, nil, "ErrTokenSignature", 0, 0},
		"a participant's token":       {sign(t, auth.NewAccessToken(testKey, testSecret)), -1, nil, "ErrInvalidChecksum", 0, 0},
		"signed, too large":           {good, 64 << 20, nil, "ErrWebhookTooLarge", 0, 0},
		"signed, unknown length":      {good, -1, nil, "ErrWebhookTooLarge", 1<<20 + 1, 1<<20 + 1},
		"signed, small limit":         {good, -1, []auth.WebhookOption{auth.MaxWebhookBody(100)}, "ErrWebhookTooLarge", 101, 101},
		"signed, length is a lie":     {good, 5, nil, "ErrWebhookTooLarge", 1<<20 + 1, 1<<20 + 1},
		"signed, length is absurd":    {good, -1 << 40, nil, "ErrWebhookTooLarge", 1<<20 + 1, 1<<20 + 1},
	} {
		body := &counter{}
		r := httptest.NewRequest("POST", "/", nil)
		r.Body, r.ContentLength = body, c.length
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		event, err := auth.ReceiveWebhook(r, webhookKeys, c.opts...)
		wantKind(t, err, c.want)
		if event != nil || body.read > c.atMost || body.read < c.atLeast {
			t.Errorf("%s: event %v after %d bytes, want %d to %d", name, event, body.read, c.atLeast, c.atMost)
		}
	}
}

// Bodies that cannot be read, or not any more.
func TestBodies(t *testing.T) {
	const text = `{"event":"room_started"}`
	broken := errors.New("broken")
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	fmt.Fprint(zip, text)
	zip.Close()
	for name, c := range map[string]struct {
		prepare func(*http.Request)
		want    string
		err     error
	}{
		"nil":           {func(r *http.Request) { r.Body = nil }, "ErrWebhookNoBody", nil},
		"http.NoBody":   {func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, 0 }, "ErrWebhookNoBody", nil},
		"read before":   {func(r *http.Request) { io.Copy(io.Discard, r.Body) }, "ErrWebhookBodyRead", nil},
		"half read":     {func(r *http.Request) { io.CopyN(io.Discard, r.Body, 7) }, "ErrWebhookBodyRead", nil},
		"put back":      {func(r *http.Request) { body, _ := io.ReadAll(r.Body); r.Body = io.NopCloser(bytes.NewReader(body)) }, "", nil},
		"closed before": {func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(http.ErrBodyReadAfterClose)) }, "ErrWebhookBodyRead", nil},
		"read fails":    {func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(broken)) }, "", broken},
		"limited":       {func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, 5) }, "ErrWebhookTooLarge", nil},
		"compressed, and says so": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(&compressed), int64(compressed.Len())
			r.Header.Set("Content-Encoding", "gzip")
		}, "ErrWebhookEncoding", nil},
		"compressed, and says nothing": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(compressed.Bytes())), int64(compressed.Len())
		}, "ErrInvalidChecksum", nil},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(text))
		r.Header.Set("Authorization", signed(t, text))
		c.prepare(r)
		event, err := auth.ReceiveWebhook(r, webhookKeys)
		if c.err != nil {
			if event != nil || !errors.Is(err, c.err) {
				t.Errorf("%s: %v, %v, want %v", name, event, err, c.err)
			}
			continue
		}
		wantKind(t, err, c.want)
		if (event == nil) != (err != nil) {
			t.Errorf("%s: event %v with %v", name, event, err)
		}
	}
}

func TestWebhookOptions(t *testing.T) {
	for says, opt := range map[string]auth.WebhookOption{
		"MaxWebhookBody(0)":     auth.MaxWebhookBody(0),
		"MaxWebhookBody(-1)":    auth.MaxWebhookBody(-1),
		"want 1 to 1073741824":  auth.MaxWebhookBody(1<<63 - 1),
		"OnWebhookError(nil)":   auth.OnWebhookError(nil),
		"webhook option 1 is n": nil,
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader("{}"))
		r.Header.Set("Authorization", signed(t, "{}"))
		_, receiveErr := auth.ReceiveWebhook(r, webhookKeys, opt)
		_, handlerErr := auth.NewWebhookHandler(webhookKeys, ignore, opt)
		for _, err := range []error{receiveErr, handlerErr} {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want an error that says %s", err, says)
			}
		}
	}
	if _, err := auth.ReceiveWebhook(httptest.NewRequest("POST", "/", nil), nil); !errors.Is(err, auth.ErrNoAuthHeader) {
		t.Errorf("%v", err)
	}
	if err := auth.VerifyWebhook(signed(t, "{}"), []byte("{}"), nil); err == nil || !strings.Contains(err.Error(), "nil") {
		t.Errorf("%v, want that the key provider is nil", err)
	}
}
