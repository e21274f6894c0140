package sockets

import (
	"context"
	"net/http"

	"github.com/coder/websocket"
	"github.com/lkrpc/lkrpc/failover"
)

// What the package documentation of failover shows, line by line. The tests of this package use it.

func joinByPath(ctx context.Context, t *failover.Transport, serverURL, token string) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, serverURL+"/rtc", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: t},
		HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	return conn, err
}

func joinWithCoder(ctx context.Context, t *failover.Transport, client *http.Client, serverURL, token string) (
	conn *websocket.Conn, first []byte, err error) {
	opts := &websocket.DialOptions{HTTPClient: client, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}}
	err = t.Connect(ctx, serverURL, token, func(ctx context.Context, serverURL string) error {
		c, resp, err := websocket.Dial(ctx, serverURL+"/rtc", opts)
		if err != nil && resp != nil {
			return &failover.StatusError{Code: resp.StatusCode, Err: err}
		} else if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { c.CloseNow() }) // should the attempt fail: else ctx never ends
		conn = c
		_, first, err = c.Read(ctx)
		return err
	})
	return conn, first, err
}
