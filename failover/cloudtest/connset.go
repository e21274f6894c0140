package cloudtest

import (
	"context"
	"sync"
)

// connSet is a set of connections. Safe for concurrent use; the zero value is empty.
type connSet[C comparable] struct {
	mu    sync.Mutex
	in    map[C]struct{}
	empty []chan struct{} // closed when the set becomes empty
}

func (s *connSet[C]) add(c C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in == nil {
		s.in = make(map[C]struct{})
	}
	s.in[c] = struct{}{}
}

func (s *connSet[C]) remove(c C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.in, c); len(s.in) > 0 {
		return
	}
	for _, ch := range s.empty {
		close(ch)
	}
	s.empty = nil
}

func (s *connSet[C]) has(c C) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.in[c]
	return ok
}

func (s *connSet[C]) all() []C {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]C, 0, len(s.in))
	for c := range s.in {
		all = append(all, c)
	}
	return all
}

// awaitEmpty returns when the set is empty or the context done.
func (s *connSet[C]) awaitEmpty(ctx context.Context) error {
	s.mu.Lock()
	if len(s.in) == 0 {
		s.mu.Unlock()
		return nil
	}
	ch := make(chan struct{})
	s.empty = append(s.empty, ch)
	s.mu.Unlock()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
