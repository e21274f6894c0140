package cloudtest

import (
	"context"
	"errors"
	"syscall"
	"testing"
)

// A connection that the kernel took before Refuse, and the host after it, is cut like those that the host had already.
func TestLateConnectionIsCut(t *testing.T) {
	for _, opts := range [][]Option{nil, {InMemory()}} {
		c, err := Start(opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		h := c.Region(0)
		h.Refuse()
		conn, err := h.doors["443"].connect(context.Background())
		if err == nil {
			defer conn.Close()
			_, err = conn.Read(make([]byte, 1))
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("connected or read: %v", err)
		}
	}
}
