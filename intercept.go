package lkrpc

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
	"google.golang.org/protobuf/proto"
)

// outgoing is one call between the interceptor, which knows the message, and the doer, which knows the request.
type outgoing struct {
	call   failover.Call
	trail  failover.Trail
	bearer *bearer // nil until there is a token
}

// hide is a text without the token of the call, of whatever form it is.
func (o *outgoing) hide(text string) string {
	if o.bearer == nil || len(o.bearer.token) < 8 { // no secret, and it may be part of any word
		return text
	}
	for _, token := range [...]string{o.bearer.token, strings.ReplaceAll(o.bearer.token, "/", `\/`)} { // in JSON that is quoted as it is
		text = strings.ReplaceAll(text, token, "[token]")
	}
	return text
}

type outgoingKey struct{}

// intercept is the innermost interceptor: it signs the token, tells the failover layer what the call may do, and turns every
// error into an *Error.
func (c *Client) intercept(next twirp.Method) twirp.Method {
	return func(ctx context.Context, request any) (any, error) {
		name := nameOf(ctx)
		out := &outgoing{}
		req, err := c.prepare(ctx, name, request, out)
		if err != nil {
			return nil, err.named(name)
		}
		ctx = failover.WithCall(ctx, &out.call)
		resp, failure := next(context.WithValue(ctx, outgoingKey{}, out), req)
		if failure != nil {
			return nil, errorOf(failure, out).named(name)
		}
		return resp, nil
	}
}

// prepare fills in what goes out with a request, and returns the request as it is sent.
func (c *Client) prepare(ctx context.Context, name methodName, request any, out *outgoing) (proto.Message, *Error) {
	req, ok := request.(proto.Message)
	if !ok || !req.ProtoReflect().IsValid() {
		return nil, localError(twirp.InvalidArgument, "the request is nil", nil)
	}
	m := methods[name] // one that has no row there needs a grant that is not known
	if err := checkContextHeaders(ctx); err != nil {
		return nil, localError(twirp.InvalidArgument, err.Error(), nil)
	}
	claims, err := m.grant.claims(req)
	if err != nil {
		return nil, localError(twirp.InvalidArgument, err.Error(), nil)
	}
	out.call = failover.Call{Repeat: m.repeat, Overtake: m.overtake, Off: failoverOff(ctx), Trail: &out.trail}
	if isSentOnce(ctx) {
		out.call.Repeat, out.call.Overtake = failover.Once, false
	}
	token, err := c.creds.Token(ctx, claims)
	switch {
	case ctx.Err() != nil: // nothing goes out
		return nil, contextError(ctx.Err(), out)
	case errors.Is(err, auth.ErrInvalidClaim), errors.Is(err, auth.ErrTokenTooLong): // because of what the request says
		return nil, localError(twirp.InvalidArgument, "no token: "+failover.Line(err.Error(), maxText), err)
	case err != nil:
		return nil, localError(twirp.Unauthenticated, "no token: "+failover.Line(err.Error(), maxText), err)
	}
	if out.bearer, err = c.bearers.of(token); err != nil {
		return nil, localError(twirp.Unauthenticated, err.Error(), nil)
	}
	if id, ok := requestID(ctx); ok && m.repeat != failover.Safe {
		if err := c.ids.use(id, name, req); err != nil {
			return nil, localError(twirp.InvalidArgument, err.Error(), nil)
		}
		out.call.RequestID = id
	}
	if m.time != nil {
		f := m.time(req)
		out.call.Floor = f.least
		if f.request != nil {
			req = f.request
		}
	}
	if data, ok := req.(*livekit.SendDataRequest); ok {
		if out.call.RequestID == "" {
			out.call.RequestID = uuid.NewString()
		}
		req = withNonce(data, out.call.RequestID)
	}
	return req, nil
}

// noCloudAgent stands in for intercept where there is no CloudAgent API.
func (c *Client) noCloudAgent(twirp.Method) twirp.Method {
	return func(ctx context.Context, _ any) (any, error) {
		return nil, localError(twirp.FailedPrecondition, errNoCloudAgent.Error(), errNoCloudAgent).named(nameOf(ctx))
	}
}

func nameOf(ctx context.Context) (n methodName) {
	n.service, _ = twirp.ServiceName(ctx)
	n.method, _ = twirp.MethodName(ctx)
	return n
}

type failoverOffKey struct{}

// WithoutFailover returns a context whose calls get one attempt each, like the option failover.Off for all calls. The step to
// an allowed region, when a project is pinned to certain regions, is still taken.
func WithoutFailover(ctx context.Context) context.Context {
	return context.WithValue(ctx, failoverOffKey{}, true)
}

func failoverOff(ctx context.Context) bool {
	off, _ := ctx.Value(failoverOffKey{}).(bool)
	return off
}

// doer is the generated clients' HTTP client. It goes to the transport directly: what http.Client adds, redirects and
// cookies, is not wanted here.
type doer struct{ c *Client }

// Do returns an answer that the generated code can take in: status 200 and protobuf. All else is an *Error.
func (d doer) Do(req *http.Request) (*http.Response, error) {
	out, _ := req.Context().Value(outgoingKey{}).(*outgoing)
	if out == nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, errors.New("lkrpc: a request without a call")
	}
	d.c.setHeader(req, out.bearer.values)
	resp, err := d.c.transport.RoundTrip(req)
	if err != nil {
		return nil, transportError(err, out)
	}
	if err := answerError(resp, out); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}
