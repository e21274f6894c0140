package bench

import (
	"errors"
	"fmt"
	"time"
)

// Job is what one client process does.
type Job struct {
	Client string // the name of the client
	Site   Site
	Proto  Proto
	Sign   bool // each call is for a new room and signs its own token; else all go to Site.Room with Site.Token

	Callers int           // of a closed loop: as many calls at a time
	Calls   int           // how many in all; 0: as many as fit into For
	For     time.Duration // with Calls 0, how long
	Every   time.Duration // above 0: an open loop, a new call each time, whether the last has ended or not
	Timeout time.Duration // the deadline of each call; 0: none
	WarmUp  int           // calls before the first that counts

	CPUProfile string // file for a profile of what counts; empty: none
	MemProfile string // the same of all allocations, each of them sampled: slow
}

// Result is what came of a Job, warm-up left out.
type Result struct {
	Calls  int
	Failed int
	Errors map[string]int // texts of failed calls, a few

	Elapsed time.Duration
	CPU     time.Duration // user and system time of the process
	Allocs  uint64        // heap objects
	Bytes   uint64        // and their size
	Worst   time.Duration // the slowest call
	Median  time.Duration // 0 in a closed loop, which keeps no latencies: they would count among the allocations

	Goroutines int // what is left of them after the client was closed
}

// Proto is how a client reaches the fake cloud.
type Proto string

// HTTP/1.1 in the clear, and over TLS to a server that speaks either of the two versions.
const (
	Plain Proto = "http/1.1"
	TLS   Proto = "http/1.1+tls"
	HTTP2 Proto = "http/2"
)

// Protos lists all.
func Protos() []Proto { return []Proto{Plain, TLS, HTTP2} }

// Home is the host of the project, which is its first region too.
const Home = "demo.livekit.cloud"

// URL is that of a host.
func (p Proto) URL(host string) string {
	if p == Plain {
		return "http://" + host
	}
	return "https://" + host
}

func (j *Job) check() error {
	switch {
	case j.Site.Hosts[j.Proto] == nil:
		return fmt.Errorf("bench: protocol %q is none of the site", j.Proto)
	case j.Every > 0 && j.Calls == 0:
		return errors.New("bench: an open loop needs a number of calls")
	case j.Every == 0 && j.Callers <= 0:
		return errors.New("bench: a closed loop needs callers")
	case j.Calls == 0 && j.For <= 0:
		return errors.New("bench: neither calls nor a time are given")
	}
	return nil
}
