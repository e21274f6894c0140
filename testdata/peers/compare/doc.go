// Command compare measures lkrpc beside the bare generated Twirp client and LiveKit's server-sdk-go, and prints the outcome as
// Markdown, with ratios of the same run:
//
//	go run -C testdata/peers ./compare            # all, some eight minutes
//	go run -C testdata/peers ./compare -quick     # less of each: to see that it works, not to quote
//	go run -C testdata/peers ./compare -cold      # also how long a build takes from nothing
//	go run -C testdata/peers ./compare -only steps
//
// # How it is measured
//
// Each client runs in a process of its own, new for every measurement, and calls a fake cloud in another: three regions under
// their real names on the loopback interface (package bench/cloud). All clients make the same call, CreateDispatch with a
// deadline of 10 s, and run the same loop around it (package bench). Time is the client's, CPU time and allocations are those of
// its process, connections and requests are counted by the cloud. What is warm-up does not count.
//
// The clients take turns, in rounds, each round in another order: what else the machine does hits all of them. A number is the
// median of the rounds, a ratio the median of the ratios within each round. The fake cloud runs on the same processors, so
// throughput tells how much work client and server do together; CPU time is the client's own.
//
// server-sdk-go has no option for a transport. It uses http.DefaultTransport, which here dials the fake cloud and is as it comes
// otherwise. The bare client keeps 100 idle connections, like lkrpc; net/http's default is 2.
package main
