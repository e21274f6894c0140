package lkrpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"github.com/twitchtv/twirp"
)

// An interceptor sees each call once, however many attempts it takes, and its *Error.
func ExampleWithInterceptors() {
	logging := func(next twirp.Method) twirp.Method {
		return func(ctx context.Context, req any) (any, error) {
			resp, err := next(ctx, req)
			method, _ := twirp.MethodName(ctx)
			if e, ok := err.(*lkrpc.Error); ok {
				fmt.Println(method, e.Code())
			} else {
				fmt.Println(method, "ok")
			}
			return resp, err
		}
	}
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud, lkrpc.WithInterceptors(logging))
	defer client.Close()

	client.Room.ListRooms(context.Background(), &livekit.ListRoomsRequest{})
	client.Room.ListParticipants(context.Background(), &livekit.ListParticipantsRequest{})
	// Output:
	// ListRooms ok
	// ListParticipants invalid_argument
}

// tracing is a transport around another one: otelhttp.NewTransport is such a one.
type tracing struct{ next http.RoundTripper }

func (t tracing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if strings.HasPrefix(r.URL.Path, "/twirp/") {
		if err != nil {
			fmt.Println(r.URL.Host, err)
		} else {
			fmt.Println(r.URL.Host, resp.StatusCode)
		}
	}
	return resp, err
}

// A wrapper of the transport sees each attempt as it goes over the wire.
func ExampleWithTransportWrapper() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud, lkrpc.WithTransportWrapper(func(next http.RoundTripper) http.RoundTripper { return tracing{next} }))
	defer client.Close()
	cloud.Region(0).Break(cloudtest.Status(503, nil, "maintenance"), cloudtest.On(cloudtest.API))

	if _, err := client.Room.ListRooms(context.Background(), &livekit.ListRoomsRequest{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// demo.livekit.cloud 503
	// demo.frankfurt.production.livekit.cloud 200
}

// Attempts are counted for metrics, by method and outcome. OnAttempt is called from any goroutine and must not block.
func ExampleWithFailover_onAttempt() {
	attempts := make(chan string, 100)
	count := func(ctx context.Context, a failover.Attempt) {
		method, _ := twirp.MethodName(ctx)
		attempts <- fmt.Sprintf("livekit_attempts_total{method=%q,origin=%q,status=\"%d\"}", method, a.Origin, a.Status)
	}
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud, lkrpc.WithFailover(failover.OnAttempt(count)))
	defer client.Close()
	cloud.Region(0).Break(cloudtest.Status(503, nil, "maintenance"), cloudtest.On(cloudtest.API))

	if _, err := client.Room.ListRooms(context.Background(), &livekit.ListRoomsRequest{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-attempts)
	fmt.Println(<-attempts)
	// Output:
	// livekit_attempts_total{method="ListRooms",origin="https://demo.livekit.cloud",status="503"}
	// livekit_attempts_total{method="ListRooms",origin="https://demo.frankfurt.production.livekit.cloud",status="200"}
}

// Servers of one's own in two places: the second is used when the first is gone. Both get the token, and neither is asked for a
// list of regions.
func ExampleWithFailover_origins() {
	cloud := exampleCloud()
	defer cloud.Close()
	us, err1 := cloud.AddHost("us.sfu.example.com")
	eu, err2 := cloud.AddHost("eu.sfu.example.com")
	if err1 != nil || err2 != nil {
		log.Fatal(err1, err2)
	}
	client := exampleClientOf(cloud, us.URL(), lkrpc.WithFailover(failover.Hosts("us.sfu.example.com"), failover.Origins(eu.URL())))
	defer client.Close()

	us.Refuse()
	_, err := client.Room.ListRooms(context.Background(), &livekit.ListRoomsRequest{})
	fmt.Println(err, len(us.Requests()), len(eu.Requests()))
	// Output: <nil> 0 1
}

// What happens below a call goes to a structured log: attempts at debug level, repeats at info, failures at warn.
func ExampleWithFailover_logger() {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	client, err := lkrpc.NewFromEnv(lkrpc.WithFailover(failover.Logger(log)))
	if err != nil {
		log.Error("no LiveKit", "err", err)
		return
	}
	defer client.Close()
}

// A private CA and a proxy, for servers inside a company. What is left open gets the settings of failover.New.
func ExampleWithHTTPTransport() {
	pem, err := os.ReadFile("company-ca.pem")
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client, err := lkrpc.New("https://sfu.company.example", auth.APIKey("APIabcdef", "the-secret"), lkrpc.WithHTTPTransport(&http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

// A header for a gateway in between, on every attempt; a context can replace it for its calls.
func ExampleWithHeader() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud, lkrpc.WithHeader(http.Header{"X-Tenant": {"acme"}}))
	defer client.Close()

	ctx, err := twirp.WithHTTPRequestHeaders(context.Background(), http.Header{"X-Tenant": {"other"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, ctx := range []context.Context{context.Background(), ctx} {
		if _, err := client.Room.ListRooms(ctx, &livekit.ListRoomsRequest{}); err != nil {
			log.Fatal(err)
		}
	}
	for _, r := range cloud.Requests() {
		if r.RPC != "" {
			fmt.Println(r.RPC, r.Header.Get("X-Tenant"))
		}
	}
	// Output:
	// RoomService/ListRooms acme
	// RoomService/ListRooms other
}

// One call that is not to be repeated, such as a probe.
func ExampleWithoutFailover() {
	cloud := exampleCloud()
	defer cloud.Close()
	client := exampleClient(cloud)
	defer client.Close()
	cloud.Region(0).Break(cloudtest.Status(503, nil, "maintenance"))

	_, err := client.Room.ListRooms(lkrpc.WithoutFailover(context.Background()), &livekit.ListRoomsRequest{})
	if e, ok := err.(*lkrpc.Error); ok {
		fmt.Println(e.Code(), e.Msg(), len(e.Attempts))
	}
	// Output: unavailable HTTP 503 Service Unavailable: maintenance 1
}
