// Command dispatch sends an agent into a room, and shows each attempt that it takes.
//
// Without arguments and without LiveKit's environment variables it runs against a LiveKit Cloud in its own process, whose
// regions it breaks. With LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET set it dispatches for real.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

const help = `Usage: dispatch [-room NAME -agent NAME [-metadata TEXT] [-wait DURATION]]

Without arguments, and with none of LiveKit's variables in the environment: shows how
dispatches survive the outages of a LiveKit Cloud that runs inside the program.

With arguments: dispatches an agent for real, unless it is dispatched there already. The
environment says where:
  LIVEKIT_URL         the server: wss://my-project.livekit.cloud
  LIVEKIT_API_KEY     the API key ...
  LIVEKIT_API_SECRET  ... and its secret,
  LIVEKIT_TOKEN       or a ready-made access token instead of the two, which may list and
                      create rooms and administer this one

  -room NAME      the room; it is made, with the agent in it, if there is none
  -agent NAME     the name that the agent's worker is registered under
  -metadata TEXT  what the agent's job is given as its metadata
  -wait DURATION  wait so long for the agent to take the job, as in 30s, and delete the dispatch
                  if none does; default: do not wait
  -h              this help

Exit status: 0 dispatched, now or before (with -wait: and an agent came), 1 failed, 2 wrong usage.
Colours are used on a terminal only, and not if NO_COLOR is set.
`

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// job is what the command line asks for.
type job struct {
	room, agent, metadata string
	wait                  time.Duration
}

func run(ctx context.Context, args []string, out, errs *os.File) int {
	var j job
	flags := flag.NewFlagSet("dispatch", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&j.room, "room", "", "")
	flags.StringVar(&j.agent, "agent", "", "")
	flags.StringVar(&j.metadata, "metadata", "", "")
	flags.DurationVar(&j.wait, "wait", 0, "")
	err := flags.Parse(args)
	trace := newTrace(out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, help)
		return exitOK
	case err != nil:
		return usage(errs, err.Error())
	case flags.NArg() > 0:
		return usage(errs, fmt.Sprintf("%q is no flag", flags.Arg(0)))
	case flags.NFlag() == 0 && !configured():
		return demo(ctx, trace)
	case j.room == "":
		return usage(errs, "say which room with -room"+wayOut(flags))
	case j.agent == "":
		return usage(errs, "say which agent with -agent"+wayOut(flags))
	case j.wait < 0:
		return usage(errs, "-wait is negative")
	}
	return dispatch(ctx, j, trace, errs)
}

// configured reports whether the environment names a server, or tries to.
func configured() bool {
	for _, name := range [...]string{"LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET", "LIVEKIT_TOKEN"} {
		if strings.TrimSpace(os.Getenv(name)) != "" {
			return true
		}
	}
	return false
}

// wayOut tells those who wanted the demonstration why they do not get it.
func wayOut(flags *flag.FlagSet) string {
	if flags.NFlag() > 0 {
		return ""
	}
	return " (for the demonstration, unset the variables whose names begin with LIVEKIT_)"
}

func usage(errs io.Writer, problem string) int {
	fmt.Fprintf(errs, "dispatch: %s\nRun it with -h for help.\n", problem)
	return exitUsage
}
