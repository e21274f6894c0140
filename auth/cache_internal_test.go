package auth

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCacheIsBounded(t *testing.T) {
	var c tokenCache
	now := time.Unix(1e9, 0)
	claims := func(i int) []byte { return fmt.Append(nil, "claims ", i) }
	for i := range 10 * cacheSize {
		c.put(claims(i), fmt.Sprint(i), now)
		if n := len(c.young) + len(c.old); n > 2*cacheSize {
			t.Fatalf("%d tokens are kept, want %d at most", n, 2*cacheSize)
		}
		if got, ok := c.get(claims(0), now); !ok || got != "0" { // in use all the time
			t.Fatalf("after %d others, the token in use is gone: %q, %t", i, got, ok)
		}
	}
	last := 10*cacheSize - 1
	if got, ok := c.get(claims(last), now); !ok || got != fmt.Sprint(last) {
		t.Errorf("the last token is %q, %t", got, ok)
	}
	if _, ok := c.get(claims(1), now); ok {
		t.Error("the first unused token is still there")
	}
	long := []byte(strings.Repeat("x", cacheText+1))
	c.put(long, "long", now)
	if _, ok := c.get(long, now); ok {
		t.Error("a token with long claims is kept")
	}
}

func TestCacheAge(t *testing.T) {
	var c tokenCache
	signed := time.Unix(1e9, 0)
	c.put([]byte("claims"), "token", signed)
	for age, want := range map[time.Duration]bool{
		0: true, time.Minute: true, cacheAge - 1: true, cacheAge: false, time.Hour: false,
		-time.Second: false, // the clock was set back: how old the token is cannot be told
	} {
		if _, ok := c.get([]byte("claims"), signed.Add(age)); ok != want {
			t.Errorf("used at the age of %v: %t, want %t", age, ok, want)
		}
	}
}
