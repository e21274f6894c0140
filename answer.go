package lkrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/lkrpc/lkrpc/failover"
	"github.com/twitchtv/twirp"
)

// answerError returns nil for an answer that holds the result, else what the answer says.
func answerError(resp *http.Response, out *outgoing) *Error {
	if resp.StatusCode == http.StatusOK && isProtobuf(resp.Header.Get("Content-Type")) {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	e := readError(resp.StatusCode, out.hide(resp.Header.Get("Content-Type")), []byte(out.hide(string(body))), out.hide).withTrail(&out.trail)
	e.HTTPStatus = resp.StatusCode
	if resp.StatusCode >= 200 && resp.StatusCode < 300 { // a 203 of protobuf, say, which the failover layer takes for the result
		e.OutcomeUnknown = true
	}
	return e
}

// isProtobuf reports whether a Content-Type is Twirp's, whatever its parameters.
func isProtobuf(contentType string) bool {
	const protobuf = "application/protobuf"
	if contentType == protobuf {
		return true
	}
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind == protobuf
}

// readError reads the body of an error: Twirp's JSON, a gateway's JSON, or text that is not ours. Each field is read for itself: a
// strange "meta" must not cost the code.
func readError(status int, contentType string, body []byte, hide func(string) string) *Error {
	if status >= 200 && status < 300 {
		return &Error{code: twirp.Internal, msg: fmt.Sprintf("status %d with type %q instead of protobuf: %s",
			status, failover.Line(contentType, maxExcerpt), excerpt(body))}
	}
	fields := fieldsOf(body)
	e := &Error{code: twirp.ErrorCode(hide(textOf(fields["code"])))}
	for _, name := range [...]string{"msg", "message", "error"} {
		if e.msg == "" {
			e.msg = failover.Line(hide(textOf(fields[name])), maxText)
		}
	}
	if e.msg == "" {
		e.msg = strings.TrimSuffix(httpReason(status)+": "+excerpt(body), ": ")
	}
	if code := string(e.code); code == "" || !twirp.IsValidErrorCode(e.code) {
		e.code = codeOf(status)
		if code != "" {
			e.msg += fmt.Sprintf(" (code %q)", failover.Line(code, maxExcerpt))
		}
	}
	if meta := fieldsOf(fields["meta"]); len(meta) > 0 {
		e.meta = make(map[string]string, len(meta))
		for key, value := range meta {
			e.meta[failover.Line(hide(key), maxText)] = failover.Line(hide(textOf(value)), maxText)
		}
	}
	return e
}

// fieldsOf returns the fields of a JSON object; of one that breaks off, those that are whole, and of anything else none.
func fieldsOf(text []byte) map[string]json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(text))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	fields := map[string]json.RawMessage{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			break
		}
		key, _ := name.(string)
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
		fields[key] = value
	}
	return fields
}

// textOf is a JSON value as text: "" for null and for none, and for what is no string the JSON itself.
func textOf(value json.RawMessage) string {
	var text string
	if len(value) == 0 || json.Unmarshal(value, &text) == nil { // null leaves it empty
		return text
	}
	return string(value)
}

// codeOf is the Twirp code for a status that came without one, as Twirp's own clients choose it; a CDN's 520 to 524 count as
// unavailable like a gateway's 502 to 504.
func codeOf(status int) twirp.ErrorCode {
	switch {
	case status >= 300 && status < 400:
		return twirp.Internal
	case status == http.StatusBadRequest:
		return twirp.Internal // a Twirp server says bad_route, malformed or invalid_argument itself
	case status == http.StatusUnauthorized:
		return twirp.Unauthenticated
	case status == http.StatusForbidden, status == http.StatusUnavailableForLegalReasons:
		return twirp.PermissionDenied
	case status == http.StatusNotFound:
		return twirp.BadRoute
	case status == http.StatusTooManyRequests:
		return twirp.ResourceExhausted
	case status >= 502 && status <= 504, status >= 520 && status <= 524:
		return twirp.Unavailable
	}
	return twirp.Unknown
}

func httpReason(status int) string {
	return strings.TrimSpace("HTTP " + strconv.Itoa(status) + " " + http.StatusText(status))
}

// How much of a text that is not ours an error quotes, in bytes.
const (
	maxText    = 500 // of a field of a server's error
	maxExcerpt = 200 // of a body that is no error of a server
)

// excerpt quotes the beginning of a body that is not ours.
func excerpt(body []byte) string { return failover.Line(string(body), maxExcerpt) }
