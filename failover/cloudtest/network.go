package cloudtest

import (
	"context"
	"net"
	"os"
	"syscall"
)

// refused is what a dial to a port fails with where nothing listens.
var refused error = os.NewSyscallError("connect", syscall.ECONNREFUSED)

// Refuse takes the host off the network as the end of its process does: connections are reset, dials refused.
func (h *Host) Refuse(when ...When) *Break { return h.breakDial(refused, when) }

// BlackHole takes the host off the network as a lost route does to new connections: dials hang until their context ends.
// Connections that exist are reset, so that no call escapes the dial; freeze them first to see them hang instead.
func (h *Host) BlackHole(when ...When) *Break { return h.breakDial(nil, when) }

// Unresolve takes the host's name out of DNS. Connections that exist go on.
func (h *Host) Unresolve(when ...When) *Break {
	b := newBreak(h)
	b.network, b.dialErr = true, &net.DNSError{Err: "no such host", Name: h.name, IsNotFound: true}
	for _, w := range when {
		w.narrow(b)
	}
	return b.put(nil)
}

func (h *Host) breakDial(err error, when []When) *Break {
	b := newBreak(h)
	b.network, b.cuts, b.dialErr = true, true, err
	for _, w := range when {
		w.narrow(b)
	}
	return b.put(func() { b.add(h.cutAll()) })
}

// Freeze stops all bytes, both ways, of the connections that the host has now. Neither side is told. New connections work.
// Clear lets the bytes go on.
func (h *Host) Freeze() *Break {
	b := newBreak(h)
	b.network, b.left = true, 0 // nothing for a dial
	gates := h.gates.all()
	b.undo = func() {
		for _, g := range gates {
			g.thaw()
		}
	}
	return b.put(func() {
		for _, g := range gates {
			g.freeze()
		}
		b.add(len(gates))
	})
}

// Connections returns how many connections to the host are open on the client's side, those in a client's idle pool included.
func (h *Host) Connections() int { return len(h.gates.all()) }

// AwaitDisconnect returns when no client has a connection to the host any more, or with the error of the context. After a fault
// that resets connections it is when clients have noticed: a request that is sent into a connection just before that may have
// arrived, for all its client can tell.
func (h *Host) AwaitDisconnect(ctx context.Context) error { return h.gates.awaitEmpty(ctx) }

// cutAll resets the host's connections, and returns how many there were.
func (h *Host) cutAll() int {
	conns := h.conns.all()
	for _, s := range conns {
		s.cut()
	}
	return len(conns)
}

// cutOff reports whether connections that are accepted now began before a fault that resets them all.
func (h *Host) cutOff() bool {
	for _, b := range h.broken() {
		if b.cuts && b.pending() {
			return true
		}
	}
	return false
}

// networkFault returns the fault for a dial, nil if there is none.
func (h *Host) networkFault() *Break {
	for _, b := range h.broken() {
		if b.network && b.use() {
			return b
		}
	}
	return nil
}
