package lkrpc_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// refused is the error of a call that is answered with this status and body.
func refused(t *testing.T, status int, body string) *lkrpc.Error {
	t.Helper()
	client := newTestClient(t, "h", roundTripper(func(r *http.Request) (*http.Response, error) {
		resp := answer(r, status, "application/json", "")
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		return resp, nil
	}))
	_, err := client.SIP.CreateSIPParticipant(background, &livekit.CreateSIPParticipantRequest{RoomName: "r", SipTrunkId: "t", SipCallTo: "+1"})
	var e *lkrpc.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T %v, want an *Error", err, err)
	}
	return e
}

// Each field of an error's JSON is read for itself: what is wrong with one costs no other.
func TestErrorJSONThatIsStrange(t *testing.T) {
	for _, c := range []struct {
		name, body string
		code       twirp.ErrorCode
		msg        string
		meta       map[string]string
	}{
		{"as it should be", `{"code":"not_found","msg":"m","meta":{"a":"b"}}`, twirp.NotFound, "m", map[string]string{"a": "b"}},
		{"meta is a list", `{"code":"not_found","msg":"m","meta":["a"]}`, twirp.NotFound, "m", nil},
		{"meta is text", `{"code":"not_found","msg":"m","meta":"a"}`, twirp.NotFound, "m", nil},
		{"meta is a number, and first", `{"meta":7,"code":"not_found","msg":"m"}`, twirp.NotFound, "m", nil},
		{"meta is null", `{"code":"not_found","msg":"m","meta":null}`, twirp.NotFound, "m", nil},
		{"meta is empty", `{"code":"not_found","msg":"m","meta":{}}`, twirp.NotFound, "m", nil},
		{"values that are no text", `{"code":"not_found","msg":"m","meta":{"n":10000000,"b":true,"o":{"k":[1]},"z":null,"a":"b"}}`,
			twirp.NotFound, "m", map[string]string{"n": "10000000", "b": "true", "o": `{"k":[1]}`, "z": "", "a": "b"}},
		{"a SIP status as a number", `{"code":"unavailable","msg":"m","meta":{"sip_status_code":486,"sip_status":"Busy Here"}}`,
			twirp.Unavailable, "m", map[string]string{"sip_status_code": "486", "sip_status": "Busy Here"}},
		{"msg is an object", `{"code":"not_found","msg":{"text":"m"}}`, twirp.NotFound, `{"text":"m"}`, nil},
		{"msg is null", `{"code":"not_found","msg":null,"message":"m"}`, twirp.NotFound, "m", nil},
		{"no msg", `{"code":"not_found","detail":"d"}`, twirp.NotFound, `HTTP 404 Not Found: {"code":"not_found","detail":"d"}`, nil},
		{"an error of one's own", `{"error":{"reason":"r"}}`, twirp.BadRoute, `{"reason":"r"}`, nil},
		{"an unknown code", `{"code":"teapot","msg":"m"}`, twirp.BadRoute, `m (code "teapot")`, nil},
		{"a code that is no text", `{"code":5,"message":"m"}`, twirp.BadRoute, `m (code "5")`, nil},
		{"a code that is null", `{"code":null,"msg":"m"}`, twirp.BadRoute, "m", nil},
		{"an empty code", `{"code":"","msg":"m"}`, twirp.BadRoute, "m", nil},
		{"broken off in msg", `{"code":"not_found","meta":{"a":"b"},"msg":"no su`, twirp.NotFound,
			`HTTP 404 Not Found: {"code":"not_found","meta":{"a":"b"},"msg":"no su`, map[string]string{"a": "b"}},
		{"broken off in meta", `{"code":"not_found","msg":"m","meta":{"a":"b","c`, twirp.NotFound, "m", nil},
		{"too long for its end to be read", `{"code":"not_found","msg":"m","meta":{"a":"` + strings.Repeat("b", 100<<10) + `"}}`, twirp.NotFound, "m", nil},
		{"more after it", `{"code":"not_found","msg":"m"}{"code":"internal"}`, twirp.NotFound, "m", nil},
		{"a list", `[{"code":"not_found"}]`, twirp.BadRoute, `HTTP 404 Not Found: [{"code":"not_found"}]`, nil},
		{"no JSON, though it begins so", `{oops}`, twirp.BadRoute, "HTTP 404 Not Found: {oops}", nil},
		{"nothing", ``, twirp.BadRoute, "HTTP 404 Not Found", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := refused(t, 404, c.body)
			if e.Code() != c.code || e.Msg() != c.msg || !maps.Equal(e.MetaMap(), c.meta) {
				t.Errorf("%s %q %v, want %s %q %v", e.Code(), e.Msg(), e.MetaMap(), c.code, c.msg, c.meta)
			}
		})
	}
}

// Nothing that a server says can do something to a terminal or a log, fill it, or carry a token into it.
func TestErrorTextIsTame(t *testing.T) {
	const evil = `\u001b[31mred\u001b[0m\r\nlevel=ERROR msg=forged\u0000\u202eright to left\u0085 Bearer\u0001abcdefghijklmnop ` + jwt
	e := refused(t, 400, `{"code":"invalid_argument","msg":"`+evil+`","meta":{"`+evil+`":"`+evil+`","n":{"k":"\n`+jwt+`"},"sip_status_code":"486","sip_status":"Busy\u0007 Here"}}`)
	const tame = "[31mred [0m level=ERROR msg=forged right to left [token] [token]"
	if e.Code() != twirp.InvalidArgument || e.Msg() != tame || e.Meta(tame) != tame {
		t.Errorf("%s %q %q, want %q", e.Code(), e.Msg(), e.MetaMap(), tame)
	}
	if code, reason, ok := lkrpc.SIPStatus(e); code != 486 || reason != "Busy Here" || !ok {
		t.Errorf("SIP status %d %q %v, want 486 Busy Here", code, reason, ok)
	}
	texts := map[string]string{"error": e.Error(), "msg": e.Msg()}
	maps.Copy(texts, e.MetaMap())
	for key, text := range texts {
		for _, r := range key + text {
			if !unicode.IsPrint(r) {
				t.Errorf("%q holds %U", key+text, r)
			}
		}
		if strings.Contains(key+text, "eyJ") || strings.Contains(text, "abcdefghijklmnop") {
			t.Errorf("a token is shown: %q", key+text)
		}
	}
	for _, long := range []string{strings.Repeat("x", 60<<10), strings.Repeat("語", 10<<10), strings.Repeat(`\u0000`, 9<<10), jwt + strings.Repeat("é ", 9<<10)} {
		for _, status := range []int{200, 400} {
			e := refused(t, status, `{"code":"invalid_argument","msg":"`+long+`","meta":{"k":"`+long+`"}}`)
			if n := len(e.Error()); n > 1000 || len(e.Meta("k")) > 503 {
				t.Errorf("status %d: an error of %d bytes with metadata of %d, want less", status, n, len(e.Meta("k")))
			}
			if strings.ContainsRune(e.Error(), unicode.ReplacementChar) {
				t.Errorf("cut within a character: %q", e.Error())
			}
		}
	}
}
