package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/lkrpc/lkrpc/auth"
)

// config is what the service is told. It can be printed: keys keeps the secret to itself.
type config struct {
	serverURL  string // for participants, who are given it with their token
	apiKey     string
	keys       *auth.SimpleKeyProvider
	listenAddr string
	agentName  string // of calls that name none; empty: each must
}

// configFromEnv reads the environment. What LiveKit's own variables hold is checked by lkrpc.NewFromEnv, except that this service
// cannot do without a key, which it signs participants' tokens with.
func configFromEnv() (config, error) {
	cfg := config{
		serverURL:  env("LIVEKIT_URL"),
		apiKey:     env("LIVEKIT_API_KEY"),
		listenAddr: cmp.Or(env("LISTEN_ADDR"), "127.0.0.1:8080"),
		agentName:  env("AGENT_NAME"),
	}
	cfg.keys = auth.NewSimpleKeyProvider(cfg.apiKey, env("LIVEKIT_API_SECRET"))
	if err := cfg.keys.Check(); err != nil {
		return config{}, fmt.Errorf("LIVEKIT_API_KEY and LIVEKIT_API_SECRET are needed, a LIVEKIT_TOKEN is not enough: %w", err)
	}
	if cfg.agentName != "" {
		if err := checkName("AGENT_NAME", cfg.agentName); err != nil {
			return config{}, err
		}
	}
	return cfg, nil
}

func env(name string) string { return strings.TrimSpace(os.Getenv(name)) }
