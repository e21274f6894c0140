// Command worker is the process in which lkrpc, or the bare generated Twirp client, is measured. See bench.Main.
package main

import (
	"context"
	"net/http"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/lkrpc/lkrpc/testdata/peers/bench"
	"github.com/twitchtv/twirp"
)

func main() { bench.Main(clients) }

var clients = map[string]bench.Factory{
	"lkrpc":           newLkrpc,
	"bare":            newBare,
	"bare+body":       newSteps(stepBody),
	"bare..context":   newSteps(stepContext),
	"bare..trace":     newSteps(stepTrace),
	"bare..headers":   newSteps(stepHeaders),
	"bare..goroutine": newSteps(stepGoroutine),
	"bare..timer":     newSteps(stepTimer),
}

func newLkrpc(t bench.Target) (*bench.Client, error) {
	tr := &http.Transport{ForceAttemptHTTP2: true}
	t.Lead(t.Proto, tr)
	creds := auth.StaticToken(t.Token)
	if t.Sign {
		creds = auth.APIKey(t.Key, t.Secret)
	}
	c, err := lkrpc.New(t.URL, creds, lkrpc.WithHTTPTransport(tr))
	if err != nil {
		return nil, err
	}
	return &bench.Client{Dispatch: dispatch(c.AgentDispatch), Close: func() { c.Close() }}, nil
}

// newBare is the least that one can do: the generated client, a token that someone else made, and an http.Client that keeps as
// many connections as there are callers, as lkrpc does too; net/http's own two would make the comparison about that.
func newBare(t bench.Target) (*bench.Client, error) {
	return bareOver(t, func(tr http.RoundTripper) http.RoundTripper { return tr })
}

// bareOver is newBare with something around the transport.
func bareOver(t bench.Target, wrap func(http.RoundTripper) http.RoundTripper) (*bench.Client, error) {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	t.Lead(t.Proto, tr)
	tr.MaxIdleConns, tr.MaxIdleConnsPerHost = 0, 100
	header := http.Header{"Authorization": {"Bearer " + t.Token}}
	authorize := twirp.WithClientInterceptors(func(next twirp.Method) twirp.Method {
		return func(ctx context.Context, req any) (any, error) {
			ctx, err := twirp.WithHTTPRequestHeaders(ctx, header)
			if err != nil {
				return nil, err
			}
			return next(ctx, req)
		}
	})
	c := livekit.NewAgentDispatchServiceProtobufClient(t.URL, &http.Client{Transport: wrap(tr)}, authorize)
	return &bench.Client{Dispatch: dispatch(c), Close: tr.CloseIdleConnections}, nil
}

func dispatch(c livekit.AgentDispatchService) func(ctx context.Context, room, agent string) (string, error) {
	return func(ctx context.Context, room, agent string) (string, error) {
		d, err := c.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: room, AgentName: agent})
		return d.GetRoom(), err
	}
}
