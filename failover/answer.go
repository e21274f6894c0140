package failover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	maxAnswer   = 32 << 20 // of an answer that stands
	maxRefusal  = 64 << 10 // of an error's body
	drainTime   = 250 * time.Millisecond
	refusalTime = 2 * time.Second
)

var (
	errTooLarge = fmt.Errorf("the answer is larger than %d MiB", maxAnswer>>20)
	errDrained  = errors.New("the rest of an error's body is not worth the time")
)

// readAnswer reads the body of a 2xx answer whole. A body that ends early is an error.
func readAnswer(resp *http.Response) ([]byte, error) {
	const trusted = 1 << 20
	var r io.Reader = resp.Body
	if stated := resp.ContentLength; stated < 0 || stated > trusted {
		r = io.LimitReader(r, maxAnswer+1)
	}
	body, err := readStated(r, resp.ContentLength, trusted)
	switch {
	case len(body) > maxAnswer:
		return nil, errTooLarge
	case err != nil:
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return body, nil
}

// readRefusal reads the body of an error answer as far as it is worth it: 64 KiB, and little time where another attempt may
// follow. What it got until then is good enough for an error's text.
func (a *attempt) readRefusal(resp *http.Response) (body []byte, cut bool) {
	limit := refusalTime
	v := a.call.pol.classify(seen{status: resp.StatusCode, cut: true}) // as it counts if the limit strikes
	if again, _ := a.call.pol.mayRepeat(a.info.Number, v); v.step == stepPinned || v.step == stepRepeat && again {
		limit = drainTime
	}
	timer := time.AfterFunc(limit, func() { a.cancel(errDrained) })
	defer timer.Stop()
	var buf bytes.Buffer
	_, err := buf.ReadFrom(io.LimitReader(resp.Body, maxRefusal+1))
	body = buf.Bytes()
	cut = err != nil || len(body) > maxRefusal || resp.Header.Get("Content-Encoding") != "" // which nobody can read
	return body[:min(len(body), maxRefusal)], cut
}

// sameType reports whether an answer has the media type of the request. Parameters such as a charset do not matter.
func sameType(asked, got string) bool {
	return asked == "" || asked == got || strings.EqualFold(mediaType(asked), mediaType(got))
}

func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(media)
}

// hasSIPStatus reports whether a Twirp error's metadata says how a SIP call ended. Of a body that is no JSON, or was cut off, the
// name is enough: a phone that has rung must not ring again.
func hasSIPStatus(body []byte) bool {
	var e struct {
		Meta map[string]any `json:"meta"`
	}
	if json.Unmarshal(body, &e) != nil {
		return bytes.Contains(body, []byte(`"sip_status_code":`)) || bytes.Contains(body, []byte(`"sip_status":`))
	}
	_, code := e.Meta["sip_status_code"]
	_, status := e.Meta["sip_status"]
	return code || status
}
