package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"
)

// run does a job in this process. It calls warm between the warm-up and what counts.
func run(job Job, clients map[string]Factory, warm func() error) (*Result, error) {
	if err := job.check(); err != nil {
		return nil, err
	}
	factory := clients[job.Client]
	if factory == nil {
		return nil, fmt.Errorf("bench: this program has no client %q", job.Client)
	}
	before := runtime.NumGoroutine()
	c, err := factory(Target{Site: job.Site, Proto: job.Proto, URL: job.Proto.URL(Home), Sign: job.Sign})
	if err != nil {
		return nil, err
	}
	r := &runner{job: job, client: c}
	if job.WarmUp > 0 {
		r.closed(max(job.Callers, 1), counter(job.WarmUp))
		if r.failed > 0 {
			return nil, fmt.Errorf("bench: warming up %s: %d calls failed: %v", job.Client, r.failed, r.errors)
		}
	}
	if err := warm(); err != nil {
		return nil, err
	}
	r = &runner{job: job, client: c}
	r.rooms.Store(int64(job.WarmUp)) // those after the warm-up are new too
	result, err := r.measured()
	if err != nil {
		return nil, err
	}
	if c.Close != nil {
		c.Close()
	}
	result.Goroutines = max(settled(before)-before, 0) // one that was there before may have ended meanwhile
	return result, nil
}

// measured runs the job's loop and what it costs.
func (r *runner) measured() (*Result, error) {
	profiled, err := startProfiles(r.job)
	if err != nil {
		return nil, err
	}
	var mem0, mem1 runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem0)
	cpu0, began := cpuTime(), time.Now()
	switch {
	case r.job.Every > 0:
		r.open()
	case r.job.Calls > 0:
		r.closed(r.job.Callers, counter(r.job.Calls))
	default:
		ctx, cancel := context.WithTimeout(context.Background(), r.job.For)
		r.closed(r.job.Callers, func() bool { return ctx.Err() == nil })
		cancel()
	}
	elapsed, cpu := time.Since(began), cpuTime()-cpu0
	runtime.ReadMemStats(&mem1)
	return &Result{
		Calls: r.calls, Failed: r.failed, Errors: r.errors,
		Elapsed: elapsed, CPU: cpu, Allocs: mem1.Mallocs - mem0.Mallocs, Bytes: mem1.TotalAlloc - mem0.TotalAlloc,
		Worst: r.worst, Median: r.median(),
	}, profiled()
}

// startProfiles begins the profiles that the job asks for. The function returned writes them.
func startProfiles(job Job) (func() error, error) {
	var finish []func() error
	if job.CPUProfile != "" {
		f, err := os.Create(job.CPUProfile)
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		finish = append(finish, func() error {
			pprof.StopCPUProfile()
			return f.Close()
		})
	}
	if job.MemProfile != "" {
		runtime.MemProfileRate = 1
		finish = append(finish, func() error {
			runtime.GC()
			f, err := os.Create(job.MemProfile)
			if err != nil {
				return err
			}
			return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
		})
	}
	return func() error {
		var errs []error
		for _, f := range finish {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}, nil
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// settled returns the number of goroutines, once it is down to what is wanted or has had a second to get there.
func settled(want int) int {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		if runtime.NumGoroutine() <= want {
			break
		}
		<-tick.C
	}
	return runtime.NumGoroutine()
}
