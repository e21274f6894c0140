package worker_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	"github.com/lkrpc/lkrpc/testdata/e2e/worker"
	"github.com/lkrpc/lkrpc/testdata/servers"
	"github.com/twitchtv/twirp"
)

const jobLimit = 30 * time.Second

// The worker and the server work together without lkrpc, by LiveKit's own clients: what the other tests here find is lkrpc's.
func TestWorker(t *testing.T) {
	s := servers.LiveKit(t)
	named := worker.Start(t, s.URL, s.Key, s.Secret, "named")
	unnamed := worker.Start(t, s.URL, s.Key, s.Secret, "")
	if named.ID == "" || named.ID == unnamed.ID {
		t.Errorf("worker ids %q and %q", named.ID, unnamed.ID)
	}
	ctx := withToken(t, s, &auth.VideoGrant{RoomAdmin: true, Room: "r"})
	client := livekit.NewAgentDispatchServiceProtobufClient(s.URL, http.DefaultClient)

	d, err := client.CreateDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "r", AgentName: "named", Metadata: "m"})
	if err != nil {
		t.Fatal(err)
	}
	job := next(t, named.Jobs)
	if job.DispatchId != d.Id || job.Metadata != "m" || job.Room.Name != "r" || job.AgentName != "named" || job.Token == "" {
		t.Errorf("the named worker got job %v, want that of dispatch %v", job.Job, d)
	}
	auto := next(t, unnamed.Jobs) // a dispatch into a new room creates it, and new rooms start unnamed workers
	if auto.Room.Name != "r" || auto.AgentName != "" || auto.DispatchId == d.Id {
		t.Errorf("the unnamed worker got job %v", auto.Job)
	}
	if err := named.Report(job, livekit.JobStatus_JS_RUNNING, ""); err != nil {
		t.Error(err)
	}
	if _, err := client.DeleteDispatch(ctx, &livekit.DeleteAgentDispatchRequest{Room: "r", DispatchId: d.Id}); err != nil {
		t.Fatal(err)
	}
	if id := next(t, named.Terminated); id != job.Id {
		t.Errorf("job %s was ended, want %s", id, job.Id)
	}
	if err := unnamed.Report(auto, livekit.JobStatus_JS_FAILED, "on purpose"); err != nil {
		t.Error(err)
	}
}

func withToken(t *testing.T, s servers.LiveKitServer, grant *auth.VideoGrant) context.Context {
	t.Helper()
	token, err := auth.NewAccessToken(s.Key, s.Secret).SetVideoGrant(grant).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := twirp.WithHTTPRequestHeaders(t.Context(), http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(jobLimit):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
