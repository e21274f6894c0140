package cloudtest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
	"google.golang.org/protobuf/proto"
)

// api serves all services by the servers that protoc-gen-twirp makes, so that what is not ours to decide (content types, bad
// routes, broken bodies) is answered as LiveKit's servers do. RoomService and AgentDispatchService are implemented; the other
// services are nil inside, since the interceptor answers their methods.
type api []livekit.TwirpServer

func newAPI(c *Cloud) api {
	opt := twirp.WithServerInterceptors(c.intercept)
	return api{
		livekit.NewAgentDispatchServiceServer(dispatchService{c.state}, opt),
		livekit.NewRoomServiceServer(roomService{c.state}, opt),
		livekit.NewAgentSimulationServer(struct{ livekit.AgentSimulation }{}, opt),
		livekit.NewCloudAgentServer(struct{ livekit.CloudAgent }{}, opt),
		livekit.NewConnectorServer(struct{ livekit.Connector }{}, opt),
		livekit.NewEgressServer(struct{ livekit.Egress }{}, opt),
		livekit.NewIngressServer(struct{ livekit.Ingress }{}, opt),
		livekit.NewPhoneNumberServiceServer(struct{ livekit.PhoneNumberService }{}, opt),
		livekit.NewSIPServer(struct{ livekit.SIP }{}, opt),
	}
}

// ServeHTTP finds the service. A path in front of /twirp, as a proxy may leave there, does not count.
func (a api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path[strings.Index(r.URL.Path, API):]
	for _, server := range a {
		if strings.HasPrefix(path, server.PathPrefix()) {
			http.StripPrefix(strings.TrimSuffix(r.URL.Path, path), server).ServeHTTP(w, r)
			return
		}
	}
	http.NotFound(w, r)
}

// rpc is one call of a method.
type rpc struct {
	service, method string
	request         proto.Message
	id              string // X-Livekit-Request-Id
	unchanged       bool   // it succeeded, but changed nothing
}

func (c *rpc) name() string { return c.service + "/" + c.method }

type rpcKey struct{}

// rpcOf returns the call that a method's implementation serves.
func rpcOf(ctx context.Context) *rpc { return ctx.Value(rpcKey{}).(*rpc) }

// reads reports whether the method only looks.
func (c *rpc) reads() bool {
	for _, verb := range [...]string{"List", "Get", "Search", "Count"} {
		if strings.HasPrefix(c.method, verb) {
			return true
		}
	}
	return false
}

// keyed reports whether the method is one that the Cloud recognises the repeat of. Those that reach a person or another system
// are not.
func (c *rpc) keyed() bool {
	switch c.name() {
	case "RoomService/SendData", "CloudAgent/PromoteAgent", "CloudAgent/RollbackAgent", "AgentSimulation/ConfirmSimulationSourceUpload":
		return true
	case "SIP/CreateSIPParticipant":
		return false
	case "AgentDispatchService/CreateDispatch", "RoomService/CreateRoom": // they find out by what is there
		return false
	}
	for _, verb := range [...]string{"Create", "Start", "Deploy", "Restart"} {
		if strings.HasPrefix(c.method, verb) {
			return true
		}
	}
	return false
}

// intercept stands in front of every method: it checks the token and its grants, answers repeats, notes what took effect, and
// answers the methods of the services that have no life of their own here, see made.
func (c *Cloud) intercept(next twirp.Method) twirp.Method {
	return func(ctx context.Context, request any) (any, error) {
		ex := ctx.Value(exchangeKey{}).(*exchange)
		call := &rpc{id: ex.entry.RequestID, request: request.(proto.Message)}
		call.service, _ = twirp.ServiceName(ctx)
		call.method, _ = twirp.MethodName(ctx)
		claims, err := c.claims(ex.r)
		switch {
		case err != nil:
			return nil, twirp.NewError(twirp.Unauthenticated, err.Error())
		case !allows(claims, call):
			return nil, twirp.NewError(twirp.Unauthenticated, permissionsDenied)
		case call.service == "RoomService", call.service == "AgentDispatchService":
			implemented := next
			next = func(ctx context.Context, request any) (any, error) {
				return implemented(context.WithValue(ctx, rpcKey{}, call), request)
			}
		default:
			next = func(context.Context, any) (any, error) { return c.state.made.answer(call) }
		}
		resp, err := c.state.once(call, func() (any, error) { return next(ctx, request) })
		if err == nil && !call.unchanged && !call.reads() {
			c.record.effect(ex.entry, Effect{Time: time.Now(), Host: ex.host.name, RPC: call.name(), RequestID: call.id})
		}
		return resp, err
	}
}
