package lkrpc

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/lkrpc/lkrpc/auth"
)

// The environment variables that NewFromEnv and New read.
const (
	envURL       = "LIVEKIT_URL"
	envKey       = "LIVEKIT_API_KEY"
	envSecret    = "LIVEKIT_API_SECRET"
	envToken     = "LIVEKIT_TOKEN"
	envAgentsURL = "LK_AGENTS_URL"
)

// NewFromEnv is New with what the environment says: LIVEKIT_URL, and LIVEKIT_API_KEY with LIVEKIT_API_SECRET, or LIVEKIT_TOKEN,
// a ready-made token, where neither of these is set. Values are trimmed. An error names the variable that is missing.
func NewFromEnv(opts ...Option) (*Client, error) {
	url, key, secret, token := env(envURL), env(envKey), env(envSecret), env(envToken)
	if url == "" {
		return nil, missing(envURL)
	}
	switch {
	case key != "" && secret != "":
		return New(url, auth.APIKey(key, secret), opts...)
	case key != "":
		return nil, missing(envSecret)
	case secret != "":
		return nil, missing(envKey)
	case token != "":
		return New(url, auth.StaticToken(token), opts...)
	}
	return nil, errors.New("lkrpc: " + envKey + " and " + envSecret + " are not set in the environment, nor is " + envToken)
}

func env(name string) string { return strings.TrimSpace(os.Getenv(name)) }

func missing(name string) error { return fmt.Errorf("lkrpc: %s is not set in the environment", name) }
