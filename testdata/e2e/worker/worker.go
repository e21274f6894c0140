// Package worker is a minimal agent worker: what a LiveKit server hands jobs to. It speaks the worker protocol over a
// WebSocket with LiveKit's own message types, takes every job, and does nothing in it but what a test says.
package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	"google.golang.org/protobuf/proto"
)

const (
	// registerLimit and writeLimit are generous: the server is on the same machine.
	registerLimit = 30 * time.Second
	writeLimit    = 30 * time.Second
	// backlog is how many jobs and terminations wait for a test to take them.
	backlog = 256
)

// Worker is a registered worker. Its methods are safe for concurrent use.
type Worker struct {
	// Jobs delivers each job that the server assigned.
	Jobs <-chan Job
	// Terminated delivers the id of each job that the server ended.
	Terminated <-chan string
	// ID is the worker's, given by the server.
	ID string

	conn       *websocket.Conn
	jobs       chan Job
	terminated chan string
	registered chan string
	closing    chan struct{}
	closed     sync.Once
	done       chan struct{} // the reader has ended
	err        error         // why; to be read once done is closed
}

// Job is an assigned job.
type Job struct {
	*livekit.Job
	URL   string // of the server to join, "" for the worker's own
	Token string // access token for the agent's participant
}

// Start connects a worker to a server and returns once it is registered. agentName is the name that dispatches ask for; a
// worker with the name "" is started in every new room. It is closed when the test ends; a connection that broke before
// fails the test.
func Start(t testing.TB, serverURL, key, secret, agentName string) *Worker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), registerLimit)
	defer cancel()
	w, err := connect(ctx, serverURL, key, secret)
	if err != nil {
		t.Fatalf("agent worker: %v", err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("agent worker %q: %v", agentName, err)
		}
	})
	if err := w.register(ctx, agentName); err != nil {
		t.Fatalf("agent worker %q: register: %v", agentName, err)
	}
	return w
}

func connect(ctx context.Context, serverURL, key, secret string) (*Worker, error) {
	token, err := auth.NewAccessToken(key, secret).SetVideoGrant(&auth.VideoGrant{Agent: true}).ToJWT()
	if err != nil {
		return nil, err
	}
	conn, _, err := websocket.Dial(ctx, serverURL+"/agent?protocol=1", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(-1) // a job holds its metadata
	w := &Worker{
		conn:       conn,
		jobs:       make(chan Job, backlog),
		terminated: make(chan string, backlog),
		registered: make(chan string, 1),
		closing:    make(chan struct{}),
		done:       make(chan struct{}),
	}
	w.Jobs, w.Terminated = w.jobs, w.terminated
	go w.read()
	return w, nil
}

func (w *Worker) register(ctx context.Context, agentName string) error {
	err := w.send(&livekit.WorkerMessage{Message: &livekit.WorkerMessage_Register{Register: &livekit.RegisterWorkerRequest{
		Type:      livekit.JobType_JT_ROOM,
		AgentName: agentName,
		Version:   "0.0.1",
	}}})
	if err != nil {
		return err
	}
	select {
	case w.ID = <-w.registered:
		return nil
	case <-w.done:
		return fmt.Errorf("connection ended: %w", w.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Report tells the server the status of a job: running, success or failed. text says why it failed.
func (w *Worker) Report(job Job, status livekit.JobStatus, text string) error {
	return w.send(&livekit.WorkerMessage{Message: &livekit.WorkerMessage_UpdateJob{UpdateJob: &livekit.UpdateJobStatus{
		JobId:  job.Id,
		Status: status,
		Error:  text,
	}}})
}

// Close ends the connection with a closing handshake. Closing twice is harmless. The error is of a connection that had broken
// before.
func (w *Worker) Close() error {
	w.closed.Do(func() {
		select {
		case <-w.done: // broken before: its error stands
		default:
			close(w.closing)
			w.conn.Close(websocket.StatusNormalClosure, "")
		}
		<-w.done
	})
	return w.err
}

func (w *Worker) send(m *livekit.WorkerMessage) error {
	data, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	return w.conn.Write(ctx, websocket.MessageBinary, data)
}

// read handles what the server says until the connection ends.
func (w *Worker) read() {
	defer close(w.done)
	for {
		err := w.readOne()
		if err == nil {
			continue
		}
		select {
		case <-w.closing:
		default:
			w.err = err
			w.conn.CloseNow()
		}
		return
	}
}

func (w *Worker) readOne() error {
	kind, data, err := w.conn.Read(context.Background())
	if err != nil {
		return err
	}
	if kind != websocket.MessageBinary {
		return fmt.Errorf("the server sent a %v message, want a binary one", kind)
	}
	var m livekit.ServerMessage
	if err := proto.Unmarshal(data, &m); err != nil {
		return err
	}
	return w.handle(&m)
}

func (w *Worker) handle(m *livekit.ServerMessage) error {
	switch m := m.Message.(type) {
	case *livekit.ServerMessage_Register:
		return deliver(w.registered, m.Register.WorkerId)
	case *livekit.ServerMessage_Availability:
		return w.accept(m.Availability.Job)
	case *livekit.ServerMessage_Assignment:
		a := m.Assignment
		return deliver(w.jobs, Job{Job: a.Job, URL: a.GetUrl(), Token: a.Token})
	case *livekit.ServerMessage_Termination:
		return deliver(w.terminated, m.Termination.JobId)
	}
	return nil // later protocol versions may say more
}

func (w *Worker) accept(job *livekit.Job) error {
	identity := "agent-" + job.Id
	return w.send(&livekit.WorkerMessage{Message: &livekit.WorkerMessage_Availability{Availability: &livekit.AvailabilityResponse{
		JobId:               job.Id,
		Available:           true,
		ParticipantIdentity: identity,
		ParticipantName:     identity,
	}}})
}

// deliver never blocks: a reader that waits for its test would not see the connection end.
func deliver[T any](c chan<- T, v T) error {
	select {
	case c <- v:
		return nil
	default:
		return errors.New("more messages from the server than the test takes")
	}
}
