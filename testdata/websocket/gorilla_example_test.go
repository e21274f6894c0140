package sockets

import (
	"context"
	"net/http"

	"github.com/gorilla/websocket"
	"github.com/lkrpc/lkrpc/failover"
)

func joinWithGorilla(ctx context.Context, t *failover.Transport, dialer websocket.Dialer, serverURL, token string) (
	conn *websocket.Conn, first []byte, err error) {
	header := http.Header{"Authorization": {"Bearer " + token}}
	err = t.Connect(ctx, serverURL, token, func(ctx context.Context, serverURL string) error {
		d := dialer
		d.NetDialContext = failover.DialUntil(ctx, dialer.NetDialContext) // gorilla does not read under ctx
		c, resp, err := d.DialContext(ctx, serverURL+"/rtc", header)
		if err != nil && resp != nil {
			return &failover.StatusError{Code: resp.StatusCode, Err: err}
		} else if err != nil {
			return err
		}
		conn = c
		_, first, err = c.ReadMessage()
		return err
	})
	return conn, first, err
}
