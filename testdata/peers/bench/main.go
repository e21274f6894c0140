package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Main is the main function of a client's process. It reads a Job from standard input, makes the client, warms it up, says
// "warm", waits for a line, does the Job, closes the client and writes the Result; it ends when standard input does, so that in
// between others can count what it left open.
func Main(clients map[string]Factory) {
	if err := serve(os.Stdin, os.Stdout, clients); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(stdin io.Reader, stdout io.Writer, clients map[string]Factory) error {
	in := bufio.NewReader(stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("bench: reading the job: %w", err)
	}
	var job Job
	if err := json.Unmarshal(line, &job); err != nil {
		return fmt.Errorf("bench: reading the job: %w", err)
	}
	result, err := run(job, clients, func() error {
		if _, err := io.WriteString(stdout, "warm\n"); err != nil {
			return err
		}
		_, err := in.ReadBytes('\n')
		return err
	})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(stdout).Encode(result); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}
