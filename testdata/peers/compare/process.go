package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/lkrpc/lkrpc/testdata/peers/bench"
	"github.com/lkrpc/lkrpc/testdata/peers/bench/cloud"
)

// process is a running program that is talked to line by line, and that ends when its standard input does.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

func start(ctx context.Context, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}

// tell writes a line of JSON.
func (p *process) tell(v any) error { return p.failed(json.NewEncoder(p.in).Encode(v)) }

// hear reads a line of JSON.
func (p *process) hear(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return p.failed(err)
	}
	return json.Unmarshal(line, v)
}

// failed adds to an error what the process had to say.
func (p *process) failed(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, p.end())
}

// end closes standard input and waits for the end.
func (p *process) end() error {
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", p.cmd.Path, err, bytes.TrimSpace(p.stderr.Bytes()))
	}
	return nil
}

// fakeCloud is the cloud's process.
type fakeCloud struct {
	*process
	site bench.Site
}

func startCloud(ctx context.Context, b binaries, strict bool) (*fakeCloud, error) {
	p, err := start(ctx, b["cloud"], fmt.Sprintf("-strict=%t", strict))
	if err != nil {
		return nil, err
	}
	c := &fakeCloud{process: p}
	return c, p.hear(&c.site)
}

func (c *fakeCloud) command(cmd cloud.Command) (s cloud.Stats, err error) {
	if err := c.tell(cmd); err != nil {
		return s, err
	}
	return s, c.hear(&s)
}

// closed returns the counts, once there are no more open connections than at first or half a second has passed: the cloud learns
// a little later than the client that a connection is closed.
func (c *fakeCloud) closed(first int) (s cloud.Stats, err error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 50 {
		if s, err = c.command(cloud.Command{}); err != nil || s.Open <= first {
			break
		}
		<-tick.C
	}
	return s, err
}

// outcome is a job's result as the client's process saw it, and as the cloud did.
type outcome struct {
	bench.Result
	requests int64 // API calls that arrived
	lists    int64 // reads of the region list
	opened   int   // connections opened, the warm-up's too
	left     int   // connections still open after the client was closed, or has ended its work if it cannot be
	tokens   int   // different ones seen by a strict cloud
}

// trial runs a job in a client's process of its own. What breaks does so after the warm-up.
func trial(ctx context.Context, b binaries, c *fakeCloud, cl client, job bench.Job, breaks cloud.Command) (*outcome, error) {
	job.Client, job.Sign, job.Site = cl.factory, cl.sign, c.site
	first, err := c.command(cloud.Command{})
	if err != nil {
		return nil, err
	}
	w, err := start(ctx, b[cl.program])
	if err != nil {
		return nil, err
	}
	defer w.end()
	if err := w.tell(job); err != nil {
		return nil, err
	}
	if line, err := w.out.ReadString('\n'); err != nil || line != "warm\n" {
		return nil, fmt.Errorf("%s does not get warm (%q): %w", cl.name, line, w.failed(err))
	}
	before, err := c.command(breaks)
	if err != nil {
		return nil, err
	}
	o := &outcome{}
	if err := w.tell("go"); err != nil {
		return nil, err
	}
	if err := w.hear(&o.Result); err != nil {
		return nil, err
	}
	after, err := c.closed(first.Open)
	if err != nil {
		return nil, err
	}
	for i := range after.Requests {
		o.requests += after.Requests[i] - before.Requests[i]
	}
	o.lists, o.opened = after.Lists-first.Lists, after.Opened-first.Opened
	o.left, o.tokens = after.Open-first.Open, after.Tokens-first.Tokens
	if after.Bad > first.Bad {
		return nil, fmt.Errorf("%s sent what no client should: %s", cl.name, after.Worst)
	}
	return o, nil
}
