package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// graceTime is how long requests may run on after the order to stop: what the longest of them takes.
const graceTime = callTime + 5*time.Second

// serve answers requests until ctx is done. Then it accepts nothing new, lets what runs be answered, and returns nil; an error
// says that something was still running after graceTime, or that serving failed.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second, // a client that sends slowly holds a connection no longer
		WriteTimeout:      callTime + 10*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10, // a webhook's token is a few hundred bytes
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	log.Info("listening", "addr", listener.Addr().String())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Info("stopping")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		server.Close()
		return fmt.Errorf("requests were cut off that did not end in %v: %w", graceTime, err)
	}
	log.Info("stopped")
	return nil
}
