package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// openTerminal returns the two sides of a pseudo-terminal.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	var number, locked int32
	for request, arg := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &locked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
			t.Fatal(errno)
		}
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, terminal
}

// onTerminal runs the demonstration on a terminal.
func onTerminal(t *testing.T, env ...string) string {
	t.Helper()
	master, terminal := openTerminal(t)
	cmd := command(t.Context(), env)
	cmd.Stdout = terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	out, _ := io.ReadAll(master) // ends with an error when the program has closed the other side
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v, output:\n%s", err, out)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// A terminal gets the same text as a pipe, with colours in it.
func TestTerminal(t *testing.T) {
	t.Parallel()
	out := onTerminal(t)
	plain := colours.ReplaceAllString(out, "")
	if !strings.Contains(out, "\x1b[32m") || !strings.Contains(out, "\x1b[31m") || strings.Contains(plain, "\x1b") {
		t.Errorf("colours on a terminal: %q", out)
	}
	if !regexp.MustCompile(demonstration).MatchString(plain) {
		t.Errorf("on a terminal:\n%s", plain)
	}
}

// NO_COLOR takes the colours away.
func TestTerminalWithoutColours(t *testing.T) {
	t.Parallel()
	if out := onTerminal(t, "NO_COLOR=1"); strings.Contains(out, "\x1b") || !regexp.MustCompile(demonstration).MatchString(out) {
		t.Errorf("with NO_COLOR: %q", out)
	}
}
