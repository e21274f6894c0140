// Command cloud is the fake cloud in a process of its own. See cloud.Serve.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/lkrpc/lkrpc/testdata/peers/bench/cloud"
)

func main() {
	strict := flag.Bool("strict", false, "check tokens and host names, and count tokens")
	flag.Parse()
	if err := cloud.Serve(os.Stdin, os.Stdout, *strict); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
