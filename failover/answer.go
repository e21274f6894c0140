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
	errLength   = errors.New("it is not as long as stated")
	errDrained  = errors.New("the rest of an error's body is not worth the time")
)

// readAnswer reads the body of a 2xx answer whole. A body that ends early is an error.
func readAnswer(resp *http.Response) ([]byte, error) {
	const trusted = 1 << 20 // a stated length up to this is allocated in advance
	stated := resp.ContentLength
	if stated >= 0 && stated <= trusted {
		body := make([]byte, stated+1) // one more, so that the read meets the end, after which net/http keeps the connection
		got, err := io.ReadFull(resp.Body, body)
		switch {
		case int64(got) == stated && (err == io.EOF || err == io.ErrUnexpectedEOF):
			return body[:got], nil
		case err == nil:
			err = errLength
		}
		return nil, truncated(err)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, truncated(err)
	case len(body) > maxAnswer:
		return nil, errTooLarge
	case stated >= 0 && int64(len(body)) != stated:
		return nil, truncated(errLength)
	}
	return body, nil
}

func truncated(err error) error { return fmt.Errorf("reading the answer: %w", err) }

// readRefusal reads the body of an error answer as far as it is worth it: 64 KiB, and little time where another attempt may
// follow. What it got until then is good enough for an error's text.
func (a *attempt) readRefusal(resp *http.Response) []byte {
	limit := refusalTime
	v := a.call.pol.classify(seen{status: resp.StatusCode})
	if again, _ := a.call.pol.mayRepeat(a.info.Number, v); v.step == stepPinned || v.step == stepRepeat && again {
		limit = drainTime
	}
	timer := time.AfterFunc(limit, func() { a.cancel(errDrained) })
	defer timer.Stop()
	var buf bytes.Buffer
	buf.ReadFrom(io.LimitReader(resp.Body, maxRefusal))
	return buf.Bytes()
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
