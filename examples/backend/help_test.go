package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lkrpc/lkrpc"
	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
)

const createDispatch = "AgentDispatchService/CreateDispatch"

// world is the service with a LiveKit Cloud to work with.
type world struct {
	http.Handler
	cloud  *cloudtest.Cloud
	client *lkrpc.Client
	log    *logBuffer
}

func newWorld(t *testing.T, opts ...cloudtest.Option) *world {
	t.Helper()
	cloud, err := cloudtest.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{cloud: cloud, log: &logBuffer{}}
	log, numbers := newLogger(w.log), newMetrics()
	options := append(clientOptions(log, numbers), lkrpc.WithHTTPTransport(cloud.Transport()))
	w.client, err = lkrpc.New(cloud.URL, auth.APIKey(cloud.Key, cloud.Secret), options...)
	if err != nil {
		t.Fatal(err)
	}
	keys := auth.NewSimpleKeyProvider(cloud.Key, cloud.Secret)
	cfg := config{serverURL: cloud.URL, apiKey: cloud.Key, keys: keys, agentName: "support"}
	if w.Handler, err = newService(cfg, w.client, log, numbers); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) close() {
	w.client.Close()
	w.cloud.Close()
}

// inBubble runs a test on fake time: outages take no time there.
func inBubble(t *testing.T, f func(t *testing.T, w *world), opts ...cloudtest.Option) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, append(opts, cloudtest.InMemory())...)
		defer w.close()
		f(t, w)
	})
}

// reply is an answer as a client of the service sees it.
type reply struct {
	status int
	header http.Header
	body   string
	callAnswer
	failure
}

// do sends a request. headers are names and values in turn.
func (w *world) do(ctx context.Context, method, path, body string, headers ...string) reply {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	recorder := httptest.NewRecorder()
	w.ServeHTTP(recorder, r)
	return read(recorder.Code, recorder.Header(), recorder.Body.Bytes())
}

func read(status int, header http.Header, body []byte) reply {
	got := reply{status: status, header: header, body: string(body)}
	if header.Get("Content-Type") == "application/json" {
		json.Unmarshal(body, &got.callAnswer)
		json.Unmarshal(body, &got.failure)
	}
	return got
}

// call sends a POST /calls.
func (w *world) call(ctx context.Context, body string, headers ...string) reply {
	return w.do(ctx, "POST", "/calls", body, append(headers, "Content-Type", "application/json")...)
}

// mustCall makes a call that succeeds.
func (w *world) mustCall(t *testing.T, body string, headers ...string) reply {
	t.Helper()
	got := w.call(t.Context(), body, headers...)
	if got.status != http.StatusOK || got.DispatchID == "" || got.URL != w.cloud.URL {
		t.Fatalf("%s: status %d, %s", body, got.status, got.body)
	}
	return got
}

// makeRoom makes a room without an agent.
func (w *world) makeRoom(t *testing.T, name string) {
	t.Helper()
	if _, err := w.client.Room.CreateRoom(t.Context(), &livekit.CreateRoomRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
}

// wantOne checks that one agent was dispatched to a room, and by which dispatch.
func (w *world) wantOne(t *testing.T, room, id string) {
	t.Helper()
	named := slices.DeleteFunc(w.cloud.Dispatches(room), func(d *livekit.AgentDispatch) bool { return d.GetAgentName() == "" })
	if len(named) != 1 || named[0].GetId() != id {
		t.Errorf("room %s has %v; want one dispatch, %s", room, named, id)
	}
}

// metric returns a number of GET /metrics, 0 if it is not there. series is a name with its labels in alphabetical order.
func (w *world) metric(t *testing.T, series string) float64 {
	t.Helper()
	got := w.do(t.Context(), "GET", "/metrics", "")
	if got.status != http.StatusOK {
		t.Fatalf("metrics: status %d, %s", got.status, got.body)
	}
	for line := range strings.Lines(got.body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// records returns the log's records with this message.
func (l *logBuffer) records(t *testing.T, msg string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(l.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("the log has %q: %v", line, err)
		}
		if record["msg"] == msg {
			found = append(found, record)
		}
	}
	return found
}
