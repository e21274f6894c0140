package cloud

import (
	"encoding/json"
	"errors"
	"io"
)

// Command is what a Cloud in another process is told; the answer to each is its Stats.
type Command struct {
	Break []int // regions to give Fault
	Fault Fault
}

// Serve is a Cloud in a process of its own: it writes its Site, answers each Command with the Stats, and ends with stdin.
func Serve(stdin io.Reader, stdout io.Writer, strict bool) error {
	c, err := Start(strict)
	if err != nil {
		return err
	}
	defer c.Close()
	in, out := json.NewDecoder(stdin), json.NewEncoder(stdout)
	if err := out.Encode(c.Site()); err != nil {
		return err
	}
	for {
		var cmd Command
		if err := in.Decode(&cmd); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for _, region := range cmd.Break {
			if err := c.Break(region, cmd.Fault); err != nil {
				return err
			}
		}
		if err := out.Encode(c.Stats()); err != nil {
			return err
		}
	}
}
