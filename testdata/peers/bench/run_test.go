package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeClients has a client that answers rightly, and fails every third call.
func fakeClients(calls *atomic.Int64, closed *atomic.Bool) map[string]Factory {
	return map[string]Factory{"fake": func(t Target) (*Client, error) {
		if t.URL != "https://"+Home || t.Secret != "s" {
			return nil, errors.New("the wrong target")
		}
		return &Client{
			Dispatch: func(_ context.Context, room, _ string) (string, error) {
				if calls.Add(1)%3 == 0 {
					return "", errors.New("every third call")
				}
				return room, nil
			},
			Close: func() { closed.Store(true) },
		}, nil
	}}
}

func fakeJob() Job {
	return Job{Client: "fake", Proto: TLS, Sign: true, Callers: 4, Calls: 30, Timeout: time.Minute,
		Site: Site{Hosts: map[Proto]map[string]string{TLS: {Home: "127.0.0.1:1"}}, Secret: "s", Room: "r"}}
}

func TestRunCounts(t *testing.T) {
	for name, set := range map[string]func(*Job){
		"closed loop": func(*Job) {},
		"open loop":   func(j *Job) { j.Every = time.Microsecond },
	} {
		var calls atomic.Int64
		var closed atomic.Bool
		job := fakeJob()
		set(&job)
		r, err := run(job, fakeClients(&calls, &closed), func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if calls.Load() != 30 || r.Calls != 30 || r.Failed != 10 || r.Errors["every third call"] != 10 || !closed.Load() || r.Goroutines != 0 {
			t.Errorf("%s: %d calls, closed %t, %+v", name, calls.Load(), closed.Load(), r)
		}
		if r.Elapsed <= 0 || r.Allocs == 0 || r.Bytes == 0 || r.Worst <= 0 || (r.Median > 0) != (job.Every > 0) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A wrong answer is a failed call; the warm-up does not count, but has to work.
func TestRunChecks(t *testing.T) {
	wrong := map[string]Factory{"fake": func(Target) (*Client, error) {
		return &Client{Dispatch: func(context.Context, string, string) (string, error) { return "another room", nil }}, nil
	}}
	r, err := run(fakeJob(), wrong, func() error { return nil })
	if err != nil || r.Failed != 30 {
		t.Errorf("%+v, %v", r, err)
	}
	job := fakeJob()
	job.WarmUp = 1
	if _, err := run(job, wrong, func() error { return nil }); err == nil {
		t.Error("a warm-up that failed was good enough")
	}
	for name, spoil := range map[string]func(*Job){
		"client":  func(j *Job) { j.Client = "another" },
		"proto":   func(j *Job) { j.Proto = HTTP2 },
		"callers": func(j *Job) { j.Callers = 0 },
		"length":  func(j *Job) { j.Calls = 0 },
		"open":    func(j *Job) { j.Calls, j.For, j.Every = 0, time.Second, time.Second },
	} {
		job := fakeJob()
		spoil(&job)
		if _, err := run(job, wrong, func() error { return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestServe(t *testing.T) {
	var calls atomic.Int64
	var closed atomic.Bool
	job := fakeJob()
	job.WarmUp, job.CPUProfile, job.MemProfile = 2, filepath.Join(t.TempDir(), "cpu"), filepath.Join(t.TempDir(), "mem")
	in, send := io.Pipe()
	receive, out := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer out.Close()
		if err := serve(in, out, fakeClients(&calls, &closed)); err != nil {
			t.Error(err)
		}
	})
	json.NewEncoder(send).Encode(job)
	lines := bufio.NewScanner(receive)
	if !lines.Scan() || lines.Text() != "warm" || calls.Load() != 2 {
		t.Fatalf("%q after %d calls", lines.Text(), calls.Load())
	}
	io.WriteString(send, "go\n")
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), `{"Calls":30,`) {
		t.Errorf("%q", lines.Text())
	}
	send.Close()
	wg.Wait()
	for _, file := range []string{job.CPUProfile, job.MemProfile} {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			t.Errorf("profile: %v, %v", info, err)
		}
	}
}
