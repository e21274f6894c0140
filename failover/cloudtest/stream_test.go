package cloudtest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pairs are the two kinds of connection a client may hold: plain memory, and memory behind a gate.
var pairs = map[string]func() (client, server net.Conn){
	"memory": func() (net.Conn, net.Conn) {
		c, s := memPipe(memAddr("client"), memAddr("server"))
		return c, s
	},
	"gate": func() (net.Conn, net.Conn) {
		c, s := memPipe(memAddr("client"), memAddr("server"))
		return newGate(c, &Host{}), s
	},
}

// eachPair runs a test on every kind of connection, in a bubble.
func eachPair(t *testing.T, test func(t *testing.T, client, server net.Conn)) {
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := pair()
				defer client.Close()
				defer server.Close()
				test(t, client, server)
			})
		})
	}
}

// Bytes arrive in order and whole, more than the buffers hold, both ways at once.
func TestStreamCarries(t *testing.T) {
	eachPair(t, func(t *testing.T, client, server net.Conn) {
		data := bytes.Repeat([]byte("0123456789abcdef"), streamLimit/4)
		var work sync.WaitGroup
		for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
			work.Go(func() {
				if n, err := ends[0].Write(data); n != len(data) || err != nil {
					t.Errorf("wrote %d: %v", n, err)
				}
			})
			work.Go(func() {
				got := make([]byte, len(data))
				if _, err := io.ReadFull(ends[1], got); err != nil || !bytes.Equal(got, data) {
					t.Errorf("read something else: %v", err)
				}
			})
		}
		work.Wait()
	})
}

// A writer is not stopped by a reader that sleeps, until the buffer is full.
func TestStreamIsBuffered(t *testing.T) {
	eachPair(t, func(t *testing.T, client, server net.Conn) {
		if n, err := client.Write(make([]byte, streamLimit)); n != streamLimit || err != nil {
			t.Errorf("wrote %d: %v", n, err)
		}
		client.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := client.Write([]byte("x")); n != 0 || !os.IsTimeout(err) {
			t.Errorf("wrote %d into a full buffer: %v", n, err)
		}
	})
}

func TestStreamDeadlines(t *testing.T) {
	eachPair(t, func(t *testing.T, client, server net.Conn) {
		begin := time.Now()
		client.SetReadDeadline(begin.Add(2 * time.Second))
		if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != 2*time.Second {
			t.Errorf("read %d after %v: %v", n, time.Since(begin), err)
		}
		if _, err := client.Read(make([]byte, 1)); !os.IsTimeout(err) {
			t.Errorf("read again: %v", err)
		}
		client.SetDeadline(time.Time{})
		go func() {
			<-time.After(time.Hour)
			server.Write([]byte("x"))
		}()
		if n, err := client.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("read %d without a deadline: %v", n, err)
		}

		// A deadline that moves into the past ends a read that waits.
		done := make(chan error)
		go func() {
			_, err := client.Read(make([]byte, 1))
			done <- err
		}()
		synctest.Wait()
		client.SetReadDeadline(time.Unix(1, 0))
		if err := <-done; !os.IsTimeout(err) {
			t.Errorf("the read that waited: %v", err)
		}
	})
}

func TestStreamEnds(t *testing.T) {
	eachPair(t, func(t *testing.T, client, server net.Conn) {
		server.Write([]byte("last"))
		server.Close()
		if rest, err := io.ReadAll(client); string(rest) != "last" || err != nil {
			t.Errorf("read %q: %v", rest, err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("wrote to a peer that has left: %v", err)
		}
		client.Close()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("wrote after Close: %v", err)
		}
		if client.LocalAddr().String() != "client" || client.RemoteAddr().Network() != "mem" {
			t.Errorf("addresses %v, %v", client.LocalAddr(), client.RemoteAddr())
		}
	})
}

// A reset follows what has arrived, and wakes both ends.
func TestStreamReset(t *testing.T) {
	eachPair(t, func(t *testing.T, client, server net.Conn) {
		client.Write([]byte("lost"))
		server.Write([]byte("arrived"))
		server.(*memConn).cut()
		if b, err := io.ReadAll(client); string(b) != "arrived" || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read %q: %v", b, err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("wrote: %v", err)
		}
	})
}

// gated returns a gate and the server behind it.
func gated() (*gate, net.Conn) {
	c, s := memPipe(memAddr("client"), memAddr("server"))
	return newGate(c, &Host{}), s
}

// A frozen gate lets nothing through, takes what a send buffer takes, and loses nothing.
func TestGateFreezes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := gated()
		defer client.Close()
		defer server.Close()
		client.freeze()
		server.Write([]byte("down"))
		client.SetReadDeadline(time.Now().Add(time.Second))
		for range 2 { // the first finds the bytes, the second knows them
			if n, err := client.Read(make([]byte, 9)); n != 0 || !os.IsTimeout(err) {
				t.Errorf("read %d while frozen: %v", n, err)
			}
		}
		data := bytes.Repeat([]byte("x"), gateLimit+1)
		client.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := client.Write(data); n != gateLimit || !os.IsTimeout(err) {
			t.Errorf("wrote %d while frozen: %v", n, err)
		}
		client.SetDeadline(time.Time{})
		wrote := make(chan error)
		go func() {
			_, err := client.Write([]byte("yz"))
			wrote <- err
		}()
		server.SetReadDeadline(time.Now().Add(time.Hour))
		if n, err := server.Read(make([]byte, 9)); n != 0 || !os.IsTimeout(err) {
			t.Errorf("the server read %d: %v", n, err)
		}
		server.SetReadDeadline(time.Time{})

		client.thaw()
		if err := <-wrote; err != nil {
			t.Errorf("the write that waited: %v", err)
		}
		got := make([]byte, gateLimit+2)
		if _, err := io.ReadFull(server, got); err != nil || string(got[gateLimit-1:]) != "xyz" {
			t.Errorf("the server read ...%q: %v", got[gateLimit-1:], err)
		}
		down := make([]byte, 4)
		if _, err := io.ReadFull(client, down[:2]); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(client, down[2:]); err != nil || string(down) != "down" {
			t.Errorf("read %q: %v", down, err)
		}
	})
}

// The peer's end is not seen through a frozen gate either, until it thaws.
func TestGateHidesTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := gated()
		defer client.Close()
		client.freeze()
		read := make(chan error)
		go func() {
			_, err := client.Read(make([]byte, 1))
			read <- err
		}()
		server.Close()
		synctest.Wait()
		select {
		case err := <-read:
			t.Fatalf("the end came through: %v", err)
		default:
		}
		client.thaw()
		if err := <-read; err != io.EOF {
			t.Errorf("read %v", err)
		}
	})
}

// Close ends what waits on a frozen gate.
func TestGateCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := gated()
		defer server.Close()
		client.freeze()
		server.Write([]byte("x"))
		client.Write(make([]byte, gateLimit))
		ends := make(chan error, 2)
		go func() {
			_, err := client.Read(make([]byte, 1))
			ends <- err
		}()
		go func() {
			_, err := client.Write([]byte("x"))
			ends <- err
		}()
		synctest.Wait()
		client.Close()
		for range 2 {
			if err := <-ends; !errors.Is(err, net.ErrClosed) {
				t.Errorf("ended with %v", err)
			}
		}
	})
}
