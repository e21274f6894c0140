// Package authpeer compares tokens and webhooks with those of LiveKit's own Go package, in both directions.
package authpeer
