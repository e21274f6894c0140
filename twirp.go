package lkrpc

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// Client has every LiveKit server API. The fields are interfaces, so that code which takes one can be tested with a fake.
// Safe for concurrent use; make one and keep it, since connections and what is known of regions live in it.
//
// Every call carries a token with just the grants that the method needs, is repeated where that is safe, and fails
// with an *Error.
type Client struct {
	AgentDispatch   livekit.AgentDispatchService
	AgentSimulation livekit.AgentSimulation
	// CloudAgent is LiveKit Cloud's API for hosted agents, at agents.<domain> of a Cloud project's URL or at LK_AGENTS_URL. On
	// any other server its calls are local errors.
	CloudAgent  livekit.CloudAgent
	Connector   livekit.Connector
	Egress      livekit.Egress
	Ingress     livekit.Ingress
	PhoneNumber livekit.PhoneNumberService
	Room        livekit.RoomService
	SIP         livekit.SIP

	transport *failover.Transport
	creds     auth.Credentials
	bearers   bearers
	header    http.Header // of WithHeader
	ids       usedIDs     // of calls
	ensured   usedIDs     // of EnsureDispatch, which may need no call that has one
	flights   flights
	server    string // the server URL, without its path: for errors
	dedups    bool   // the server knows a request id that it has seen
}

// New returns a Client for a server: "wss://my-project.livekit.cloud", "https://sfu.example.com", "localhost:7880". ws and wss
// count as http and https; without a scheme it is https, but http for loopback addresses. A path is kept in front of each
// request's.
//
// creds is auth.APIKey(key, secret), auth.StaticToken(token) or an implementation of your own. An error says what is wrong
// with the URL, the credentials or an option. LK_AGENTS_URL in the environment says where the CloudAgent API is.
func New(serverURL string, creds auth.Credentials, opts ...Option) (*Client, error) {
	server, err := parseServerURL(serverURL)
	if err != nil {
		return nil, err
	}
	if err := auth.CheckCredentials(creds); err != nil {
		return nil, fmt.Errorf("lkrpc: %w", err)
	}
	var cfg config
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("lkrpc: option %d is nil", i+1)
		}
		if err := opt(&cfg); err != nil {
			return nil, err
		}
	}
	agents, err := cfg.findAgents(server)
	if err != nil {
		return nil, err
	}
	c := &Client{creds: creds, header: cfg.header, server: server.Host}
	if c.transport, err = failover.New(cfg.transport, cfg.failover...); err != nil {
		return nil, fmt.Errorf("lkrpc: %w", err)
	}
	if why := c.transport.OriginsUnused(server.String()); why != "" {
		return nil, fmt.Errorf("lkrpc: failover.Origins is given, but %s", why)
	}
	c.dedups = c.transport.Dedups(server.String())
	c.makeServices(server, agents, cfg.interceptors)
	return c, nil
}

// findAgents returns the URL of the CloudAgent API, nil if there is none, and makes its host known to the failover layer.
func (cfg *config) findAgents(server *url.URL) (*url.URL, error) {
	agents, ok := agentsURL(server)
	if raw := env(envAgentsURL); raw != "" {
		u, err := parseServerURL(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", envAgentsURL, err)
		}
		agents, ok = u, true
	}
	if !ok {
		return nil, nil
	}
	if hostName(agents) != hostName(server) { // else the server itself would count as one: without regions, and known to dedup
		cfg.failover = append(slices.Clone(cfg.failover), failover.CloudAPIHosts(agents.Host))
	}
	return agents, nil
}

func (c *Client) makeServices(server, agents *url.URL, interceptors []twirp.Interceptor) {
	base := server.String()
	chain := append(slices.Clone(interceptors), c.intercept)
	opt := twirp.WithClientInterceptors(chain...)
	do := doer{c}
	c.AgentDispatch = livekit.NewAgentDispatchServiceProtobufClient(base, do, opt)
	c.AgentSimulation = livekit.NewAgentSimulationProtobufClient(base, do, opt)
	c.Connector = livekit.NewConnectorProtobufClient(base, do, opt)
	c.Egress = livekit.NewEgressProtobufClient(base, do, opt)
	c.Ingress = livekit.NewIngressProtobufClient(base, do, opt)
	c.PhoneNumber = livekit.NewPhoneNumberServiceProtobufClient(base, do, opt)
	c.Room = livekit.NewRoomServiceProtobufClient(base, do, opt)
	c.SIP = livekit.NewSIPProtobufClient(base, do, opt)
	if agents != nil {
		c.CloudAgent = livekit.NewCloudAgentProtobufClient(agents.String(), do, opt)
		return
	}
	none := twirp.WithClientInterceptors(append(slices.Clone(interceptors), c.noCloudAgent)...)
	c.CloudAgent = livekit.NewCloudAgentProtobufClient(base, do, none)
}

// Close ends what runs in the background and closes idle connections. Calls that are running go on; later ones fail. Closing
// twice is harmless, and so is closing a Client of fakes that New did not make. It returns nil.
func (c *Client) Close() error {
	if c.transport == nil {
		return nil
	}
	return c.transport.Close()
}

// String names the server. It holds no secret.
func (c *Client) String() string { return "lkrpc.Client(" + c.server + ")" }

// errNoCloudAgent is why CloudAgent calls fail on servers that are not LiveKit Cloud's.
var errNoCloudAgent = errors.New("the CloudAgent API exists on LiveKit Cloud only: use a project's URL (*.livekit.cloud), or set " +
	envAgentsURL + " to where the API is")
