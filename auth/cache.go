package auth

import (
	"sync"
	"time"
)

const (
	// cacheSize is how many tokens each of the two halves of a cache holds.
	cacheSize = 256
	// cacheText is how long the claims of a cached token may be. With it, a full cache takes about a megabyte.
	cacheText = 1 << 10
	// cacheAge is how old a cached token may be: it is replaced long before it expires.
	cacheAge = callLifetime / 2
)

// tokenCache keeps signed tokens by their exact claims. It has two halves: what is used moves to the young one; when that is
// full, the old one is forgotten and the halves change places. The zero value is an empty cache. Safe for concurrent use.
type tokenCache struct {
	mu         sync.Mutex
	young, old map[string]cachedToken
}

type cachedToken struct {
	token  string
	signed int64 // Unix seconds: what counts is the wall clock, as for the server
}

func (c *tokenCache) get(claims []byte, now time.Time) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.young[string(claims)]
	if !ok {
		if t, ok = c.old[string(claims)]; ok && t.fresh(now) {
			c.keep(string(claims), t)
		}
	}
	return t.token, ok && t.fresh(now)
}

func (t cachedToken) fresh(now time.Time) bool {
	age := now.Unix() - t.signed
	return 0 <= age && age < int64(cacheAge/time.Second)
}

func (c *tokenCache) put(claims []byte, token string, now time.Time) {
	if len(claims) > cacheText {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(string(claims), cachedToken{token, now.Unix()})
}

func (c *tokenCache) keep(claims string, t cachedToken) {
	if len(c.young) >= cacheSize {
		c.young, c.old = c.old, c.young
		clear(c.young)
	}
	if c.young == nil {
		c.young = make(map[string]cachedToken)
	}
	c.young[claims] = t
}
