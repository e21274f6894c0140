package lkrpc_test

import (
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/failover"
	"google.golang.org/protobuf/proto"
)

// What each method's row says of its repeats, seen from outside.

// repeatClass is the class that the name of a method ("livekit.SIP/CreateSIPTrunk") stands for: once and the creates with an id of
// their own are named one by one, what reads or ends something is told by its verb, and all else creates.
func repeatClass(name string) string {
	switch service, method := path.Split(strings.TrimPrefix(name, "livekit.")); {
	case service == "Connector/":
		return "once"
	case method == "CreateSIPParticipant", method == "TransferSIPParticipant", method == "MoveParticipant", method == "ForwardParticipant",
		method == "PerformRpc", method == "PurchasePhoneNumber":
		return "once"
	case method == "CreateDispatch", method == "CreateIngress":
		return "overtaken"
	case method == "CreateRoom":
		return "safe"
	default:
		for _, verb := range []string{"List", "Get", "Search", "Count", "Delete", "Update", "Stop", "Remove", "Mute", "Cancel", "Release", "Destroy"} {
			if strings.HasPrefix(method, verb) {
				return "safe"
			}
		}
		return "keyed"
	}
}

// spoiled is a transport whose first API request of a call goes wrong, and whose others are answered.
type spoiled struct {
	silent bool // the first is not answered at all, rather than with a 500

	mu    sync.Mutex
	began []time.Time // of API requests
	given time.Time   // when the first was given up; zero while it runs
}

func (s *spoiled) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
		io.Copy(io.Discard, r.Body)
	}
	if !strings.HasPrefix(r.URL.Path, "/twirp/") {
		return answer(r, 404, "text/plain", ""), nil // there are no other regions
	}
	s.mu.Lock()
	s.began = append(s.began, time.Now())
	first := len(s.began) == 1
	s.mu.Unlock()
	switch {
	case first && s.silent:
		<-r.Context().Done()
		s.mu.Lock()
		s.given = time.Now()
		s.mu.Unlock()
		return nil, r.Context().Err()
	case first:
		return answer(r, 500, "text/plain", ""), nil
	}
	return answer(r, 200, "application/protobuf", ""), nil
}

// eachSpoiled calls every method that there is on a server, and tells what became of it.
func eachSpoiled(t *testing.T, url string, silent bool, check func(name string, s *spoiled, err error)) {
	facts := permissions(t)
	synctest.Test(t, func(t *testing.T) {
		s := &spoiled{}
		client := newTestClient(t, url, s, lkrpc.WithFailover(failover.Hosts("sfu.example.com"), failover.WithoutPrefetch()))
		eachMethod(client, func(name string, req proto.Message, call func(proto.Message) (proto.Message, error)) {
			s.began, s.given, s.silent = nil, time.Time{}, silent
			_, err := call(facts[name].request(req))
			synctest.Wait() // until what lost has gone
			check(name, s, err)
			<-time.After(time.Minute) // in which the budget and the cool-down forget it
		})
	})
}

// After a 500 nobody knows what came of the call: it is sent again where that is harmless.
func TestRepeatClassOfEachMethod(t *testing.T) {
	for url, requests := range map[string]map[string]int{
		"wss://proj.livekit.cloud": {"safe": 2, "overtaken": 2, "keyed": 2, "once": 1},
		"wss://sfu.example.com":    {"safe": 2, "overtaken": 1, "keyed": 1, "once": 1},
	} {
		called := 0
		eachSpoiled(t, url, false, func(name string, s *spoiled, err error) {
			if strings.HasPrefix(name, "livekit.CloudAgent/") && !strings.HasSuffix(url, "livekit.cloud") {
				return // which is not there
			}
			called++
			class := repeatClass(name)
			if want := requests[class]; len(s.began) != want || (err == nil) != (want > 1) {
				t.Errorf("%s, %s, on %s: %d requests, %v; want %d", name, class, url, len(s.began), err, want)
			}
		})
		if called < 60 {
			t.Errorf("%d methods were called on %s", called, url)
		}
	}
}

// A request that is not answered is overtaken, cut or waited for.
func TestPatienceOfEachMethod(t *testing.T) {
	eachSpoiled(t, "wss://proj.livekit.cloud", true, func(name string, s *spoiled, err error) {
		class := repeatClass(name)
		if class == "once" {
			if len(s.began) != 1 || err == nil {
				t.Errorf("%s: %d requests, %v; want one that is waited for", name, len(s.began), err)
			}
			return
		}
		if len(s.began) != 2 || err != nil {
			t.Errorf("%s: %d requests, %v; want 2", name, len(s.began), err)
			return
		}
		patience := 10 * time.Second
		if class == "safe" {
			patience = 5 * time.Second
		}
		second := s.began[1].Sub(s.began[0])
		if second < patience || second > patience+200*time.Millisecond {
			t.Errorf("%s, %s: sent again after %v, want %v and a backoff", name, class, second, patience)
		}
		if beside := !s.given.Before(s.began[1]); beside != (class != "keyed") {
			t.Errorf("%s, %s: the second was sent beside the first: %t", name, class, beside)
		}
	})
}
