package failover_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/lkrpc/lkrpc/failover"
)

// A storm is many calls while everything fails at random. Whatever happens, a call that somebody notices is served once at most,
// nothing that was served is said not to have been, and every call is back in time.
func TestStorm(t *testing.T) {
	for _, scheme := range []string{"http://", "https://"} {
		t.Run(scheme, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed) // which does not decide all: goroutines race
			inWorld(t, func(w *world) { newStorm(w, scheme, seed).rage() })
		})
	}
}

type storm struct {
	*world
	scheme string

	mu     sync.Mutex
	random *rand.Rand
	served map[string]int // by request id
}

func newStorm(w *world, scheme string, seed uint64) *storm {
	return &storm{world: w, scheme: scheme, random: rand.New(rand.NewPCG(seed, 0)), served: map[string]int{}}
}

var stormHosts = []string{project, region1, region2}

func (s *storm) n(most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(most)
}

func (s *storm) upTo(d time.Duration) time.Duration {
	return time.Duration(s.n(int(d/time.Millisecond))) * time.Millisecond
}

func (s *storm) rage() {
	for _, host := range stormHosts {
		s.serve(host, s.answer)
	}
	lists := []http.HandlerFunc{regions("1", s.scheme+region1, s.scheme+region2), regions("60", s.scheme+region2), regions("0"), status(500), hang,
		regions("3", s.scheme+region2, s.scheme+region1)}
	s.sites[project].setList(func(rw http.ResponseWriter, r *http.Request) { lists[s.n(len(lists))](rw, r) })
	rt := s.secure().transport()
	stop := make(chan struct{})
	go s.shake(stop)
	var calls sync.WaitGroup
	answered := make(chan bool, 400)
	for i := range cap(answered) {
		pass(s.upTo(100 * time.Millisecond))
		calls.Go(func() { answered <- s.call(rt, i) })
	}
	calls.Wait()
	close(stop)
	pass(2 * time.Minute)
	close(answered)
	good := 0
	for ok := range answered {
		if ok {
			good++
		}
	}
	s.t.Logf("%d calls were answered", good)
	if good == 0 {
		s.t.Error("no call was answered: the storm is too strong to show anything")
	}
}

// answer serves a request, or spoils it before or after.
func (s *storm) answer(rw http.ResponseWriter, r *http.Request) {
	serve := func() {
		s.mu.Lock()
		s.served[r.Header.Get(failover.RequestIDHeader)]++
		s.mu.Unlock()
	}
	switch s.n(14) {
	case 0:
		status(503)(rw, r)
	case 1:
		serve()
		status(500)(rw, r)
	case 2:
		serve()
		broken(rw, r)
	case 3:
		serve()
		hang(rw, r)
	case 4:
		serve()
		rw.Header().Set("Content-Type", protobuf)
		rw.Header().Set("Content-Length", "100")
		rw.Write([]byte("short"))
		broken(rw, r)
	case 5:
		status(451)(rw, r)
	case 6:
		serve()
		rw.WriteHeader(http.StatusEarlyHints)
		after(s.upTo(12*time.Second), ok)(rw, r)
	case 7:
		rw.Header().Set("Retry-After", []string{"0", "1", "-1", "99999999999999999999999", "x", "Mon, 01 Jan 0001 00:00:00 GMT"}[s.n(6)])
		status(503)(rw, r)
	case 8:
		rw.Header().Set("Connection", "close")
		status(522)(rw, r)
	default:
		serve()
		ok(rw, r)
	}
}

// shake spoils the network until stop is closed.
func (s *storm) shake(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(s.upTo(1500 * time.Millisecond)):
		}
		address := stormHosts[s.n(3)] + []string{":80", ":443"}[s.n(2)]
		switch s.n(10) {
		case 0:
			s.net.Break(address)
		case 1:
			s.net.Unwritable(address)
		case 2:
			s.net.Freeze(address)
		case 3:
			s.net.Delay(address, s.upTo(4*time.Second))
		case 4:
			s.net.Delay(address, 0)
		case 5:
			s.net.BlackHole(address, true)
		default: // more often than it begins
			s.net.BlackHole(address, false)
		}
	}
}

// call makes a call and judges it. It reports whether it was answered.
func (s *storm) call(rt *failover.Transport, i int) bool {
	call := failover.Call{RequestID: fmt.Sprint("call-", i), Overtake: i%8 == 3,
		Repeat: []failover.Repeat{failover.Once, failover.Once, failover.Safe, failover.Keyed}[i%4]}
	ctx, limit := context.Background(), 30*time.Second
	switch s.n(3) {
	case 0:
		limit = s.upTo(15 * time.Second)
		ctx = within(s.world, limit)
	case 1:
		limit = s.upTo(8 * time.Second)
		cancelled, cancel := context.WithCancel(ctx)
		time.AfterFunc(limit, cancel)
		ctx = cancelled
	}
	r := s.send(ctx, rt, s.scheme+project, call, []string{"", "request", "request"}[i%3])
	if r.took > limit+100*time.Millisecond {
		s.t.Errorf("%s took %v of %v", call.RequestID, r.took, limit)
	}
	pass(20 * time.Second) // for what is still on its way
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.served[call.RequestID]; {
	case call.Repeat == failover.Once && n > 1, r.status == http.StatusOK && n == 0,
		r.status != http.StatusOK && n > 0 && !r.trail.OutcomeUnknown:
		s.t.Errorf("%s was served %d times, and came to %d, %v: %+v", call.RequestID, n, r.status, r.err, r.trail)
	}
	return r.status == http.StatusOK
}
