// Command backend is a small HTTP service in front of LiveKit: it brings a caller and an agent together in a room.
//
// POST /calls sees to it that an agent is in the room and answers with the caller's token; POST /webhook hears from LiveKit how
// rooms end; GET /healthz and GET /metrics are for those who run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/lkrpc/lkrpc"
)

const help = `Usage: backend [-h]

Serves
  POST /calls     {"room", "identity", "agent_name", "metadata"}: an agent in the room, and a token to join it
  POST /webhook   what LiveKit sends; set its URL in the project's settings
  GET  /healthz   200 while the service runs
  GET  /metrics   for Prometheus

The environment says how:
  LIVEKIT_URL         the server: wss://my-project.livekit.cloud
  LIVEKIT_API_KEY     the API key ...
  LIVEKIT_API_SECRET  ... and its secret
  LISTEN_ADDR         where to listen; default 127.0.0.1:8080
  AGENT_NAME          the agent of calls that name none; default: every call names its own

SIGINT or SIGTERM ends it: it accepts nothing new, answers what runs, and exits. A second signal ends it at once.
Logs go to standard error as JSON. Exit status: 0 ended by a signal, 1 failed, 2 wrong usage.
`

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal does what signals do
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program, until ctx is done.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("backend", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, help)
		return exitOK
	case err != nil:
		return usage(errs, err)
	case flags.NArg() > 0:
		return usage(errs, fmt.Errorf("%q is no flag", flags.Arg(0)))
	}
	log, numbers := newLogger(errs), newMetrics()
	client, err := lkrpc.NewFromEnv(clientOptions(log, numbers)...)
	if err != nil {
		return usage(errs, err)
	}
	defer client.Close()
	cfg, err := configFromEnv()
	if err != nil {
		return usage(errs, err)
	}
	service, err := newService(cfg, client, log, numbers)
	if err != nil {
		return usage(errs, err)
	}
	listener, err := net.Listen("tcp", cfg.listenAddr)
	if err != nil {
		log.Error("cannot listen", "error", err)
		return exitFailed
	}
	if err := serve(ctx, listener, service, log); err != nil {
		log.Error("failed", "error", err)
		return exitFailed
	}
	return exitOK
}

func usage(errs io.Writer, problem error) int {
	fmt.Fprintf(errs, "backend: %v\nRun it with -h for help.\n", problem)
	return exitUsage
}
