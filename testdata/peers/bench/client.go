package bench

import "context"

// Target is what a client is made for.
type Target struct {
	Site
	Proto Proto
	URL   string // of the project
	Sign  bool   // with Key and Secret, else send Token
}

// Client is one that is compared.
type Client struct {
	// Dispatch creates the dispatch of an agent in a room, and returns the answer's room.
	Dispatch func(ctx context.Context, room, agent string) (string, error)
	// Close does what the client has for its end. Nil: it has nothing.
	Close func()
}

// Factory makes a client.
type Factory func(Target) (*Client, error)
