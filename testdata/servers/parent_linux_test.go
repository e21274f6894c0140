package servers

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	orphanEnv = "LKRPC_SERVERS_TEST_ORPHAN"
	urlPrefix = "server at "
)

// A test process that is killed, by go test's timeout for example, stops nothing itself. Its servers end all the same.
func TestServerEndsWithItsProcess(t *testing.T) {
	if os.Getenv(orphanEnv) != "" { // the process to be killed
		os.Stdout.WriteString(urlPrefix + TestServer(t, 1).URLs[0] + "\n")
		<-t.Context().Done()
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestServerEndsWithItsProcess$", "-test.v")
	cmd.Env = append(cmd.Environ(), orphanEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := ""
	lines := bufio.NewScanner(out)
	for url == "" && lines.Scan() {
		_, url, _ = strings.Cut(lines.Text(), urlPrefix)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if url == "" {
		t.Fatalf("the process started no server: %v", err)
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for stop := time.After(startLimit); ; {
		resp, err := client.Get(url)
		if err != nil {
			return
		}
		resp.Body.Close()
		select {
		case <-tick.C:
		case <-stop:
			t.Fatalf("%s still answers", url)
		}
	}
}
