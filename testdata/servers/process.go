package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"
)

// pollEvery is how often a starting server is asked whether it serves.
const pollEvery = 25 * time.Millisecond

// process is a running server.
type process struct {
	log    bytes.Buffer // what it printed; to be read once done is closed
	cancel context.CancelFunc
	done   chan struct{}
	err    error // why it ended; to be read once done is closed
}

// start runs a program with an environment of its own, since servers take settings from theirs.
func start(bin string, args, env []string) *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{cancel: cancel, done: make(chan struct{})}
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append([]string{}, env...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.SysProcAttr = dieWithParent()
	go func() {
		// The kernel ends the child when the thread that started it ends, so this one stays while the child runs.
		runtime.LockOSThread()
		defer close(p.done)
		p.err = cmd.Run()
	}()
	return p
}

// stop kills the process and returns when it has ended.
func (p *process) stop() {
	p.cancel()
	<-p.done
}

// portTaken tells whether a stopped process ended because another had one of its ports.
func (p *process) portTaken() bool {
	return bytes.Contains(p.log.Bytes(), []byte("address already in use"))
}

// awaitReady returns nil once the process serves HTTP on the ports, and an error when it ended before or ctx is done.
func (p *process) awaitReady(ctx context.Context, ports []int, secret string) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := allReady(ctx, ports, secret)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			if p.err == nil {
				return errors.New("it ended by itself")
			}
			return fmt.Errorf("it ended: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("it is not ready after %v: %w", startLimit, err)
		case <-tick.C:
		}
	}
}
