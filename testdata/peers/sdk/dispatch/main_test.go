package main

import (
	"testing"

	"github.com/lkrpc/lkrpc/testdata/peers/bench"
	"github.com/lkrpc/lkrpc/testdata/peers/bench/cloud"
)

// The program that is weighed does what it is for.
func TestDispatch(t *testing.T) {
	c, err := cloud.Start(true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	site := c.Site()
	id, err := dispatch(t.Context(), "http://"+site.Hosts[bench.Plain][bench.Home], site.Key, site.Secret)
	if s := c.Stats(); err != nil || id == "" || s.Requests[0] != 1 || s.Bad != 0 {
		t.Errorf("id %q, %v; %+v", id, err, s)
	}
}
