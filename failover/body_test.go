package failover

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestInMemory(t *testing.T) {
	pipe, _ := io.Pipe()
	for name, c := range map[string]struct {
		body io.Reader
		want bool
	}{
		"bytes.Buffer":                           {bytes.NewBufferString("x"), true}, // what the generated clients send
		"bytes.Reader":                           {bytes.NewReader([]byte("x")), true},
		"strings.Reader":                         {strings.NewReader("x"), true},
		"pipe":                                   {pipe, false},
		"file":                                   {os.Stdin, false},
		"closer without an effect around a pipe": {io.NopCloser(pipe), false},
		"closer without an effect around a buffered pipe":  {io.NopCloser(bufio.NewReader(pipe)), false}, // of the same type
		"closer without an effect around a file":           {io.NopCloser(os.Stdin), false},
		"closer without an effect around a body in memory": {io.NopCloser(strings.NewReader("x")), true},
		"closer without an effect around nothing":          {io.NopCloser(nil), false},
		"reader that embeds one in memory":                 {struct{ *bytes.Reader }{bytes.NewReader([]byte("x"))}, false},
	} {
		req, err := http.NewRequest(http.MethodPost, "http://h/", c.body)
		if err != nil {
			t.Fatal(err)
		}
		req.GetBody = func() (io.ReadCloser, error) { return req.Body, nil }
		if got := inMemory(req.Body); got != c.want {
			t.Errorf("%s, %T: %t, want %t", name, req.Body, got, c.want)
		}
		if n := testing.AllocsPerRun(10, func() { inMemory(req.Body) }); n > 0 {
			t.Errorf("%s: the look costs %v allocations", name, n)
		}
	}
}
