package rttest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

// quiet is a server's log that nobody wants to read: connections are broken on purpose.
var quiet = log.New(io.Discard, "", 0)

// overTLS starts net/http's own Transport and server.
func overTLS(http2 bool) Start {
	return func(t testing.TB, handler http.Handler) Site {
		server := httptest.NewUnstartedServer(handler)
		server.EnableHTTP2 = http2
		server.Config.ErrorLog = quiet
		server.StartTLS()
		t.Cleanup(server.Close)
		tr := server.Client().Transport.(*http.Transport)
		t.Cleanup(tr.CloseIdleConnections)
		return Site{RoundTripper: tr, URL: server.URL + "/path?query=1", Dead: "https://" + Vacant(t, "127.0.0.1") + "/path"}
	}
}

// The contract asks for nothing that net/http's own Transport does not do.
func TestTransport(t *testing.T) {
	t.Run("HTTP/1.1", func(t *testing.T) { Run(t, overTLS(false)) })
	t.Run("HTTP/2", func(t *testing.T) { Run(t, overTLS(true)) })
	t.Run("with an end", func(t *testing.T) {
		Run(t, func(t testing.TB, handler http.Handler) Site {
			s := overTLS(false)(t, handler)
			c := &closable{RoundTripper: s.RoundTripper}
			s.RoundTripper, s.Close = c, c.Close
			return s
		})
	})
}
