package failover

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"
)

// readBody takes the request's body into memory, so that each attempt sends the same bytes, and an attempt that outlives the
// call does not read from what the caller owns again by then.
func (c *call) readBody() error {
	if c.req.Body == nil || c.req.Body == http.NoBody {
		return nil
	}
	if inMemory(c.req.Body) {
		return c.fill()
	}
	done := make(chan error, 1)
	go func() {
		err := errEnded
		defer func() { done <- err }()
		err = c.fill()
	}()
	var wall <-chan time.Time
	if at := c.wall(); !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		wall = timer.C
	}
	select {
	case err := <-done:
		return err
	case <-c.ctx.Done():
	case <-wall:
	}
	go func() { // closing ends the read of a pipe; it may itself hang
		c.req.Body.Close()
	}()
	return nil // run sees that the time is over
}

func (c *call) fill() error {
	defer c.req.Body.Close()
	stated := c.req.ContentLength
	if stated == 0 { // with a body: unknown
		stated = -1
	}
	body, err := readStated(c.req.Body, stated, maxAnswer)
	if err != nil {
		return fmt.Errorf("reading the request's body: %w", err)
	}
	c.body = body
	return nil
}

// memoryCloser is the type that http.NewRequest gives to a body in memory: io.NopCloser's, for one that can write itself.
var memoryCloser = reflect.TypeOf(io.NopCloser(new(bytes.Reader)))

// inMemory reports whether it is certain that reading a body cannot hang. A request's GetBody does not prove it, since anybody may
// set that, nor does the body's type, since io.NopCloser gives it to other readers too. So the reader inside is looked at, as
// net/http does it. A body in memory that is not recognised costs a goroutine, no more.
func inMemory(body io.Reader) bool {
	if v := reflect.ValueOf(body); v.Type() == memoryCloser && v.Kind() == reflect.Struct && v.NumField() == 1 && v.Field(0).CanInterface() {
		switch v.Field(0).Interface().(type) {
		case *bytes.Buffer, *bytes.Reader, *strings.Reader:
			return true
		}
	}
	return false
}

// readStated reads a body whose length is stated, or negative if it is not. Up to trusted bytes are allocated on that word.
func readStated(r io.Reader, stated, trusted int64) (body []byte, err error) {
	switch {
	case stated < 0:
		return io.ReadAll(r)
	case stated > trusted:
		body, err = io.ReadAll(io.LimitReader(r, stated+1))
	default:
		body = make([]byte, stated+1) // one more, so that the read meets the end, after which net/http keeps the connection
		var n int
		n, err = io.ReadFull(r, body)
		if body = body[:n]; int64(n) == stated && (err == io.EOF || err == io.ErrUnexpectedEOF) {
			err = nil
		}
	}
	if err == nil && int64(len(body)) != stated {
		err = fmt.Errorf("its length is not the %d bytes that were stated", stated)
	}
	return body, err
}
