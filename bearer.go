package lkrpc

import "sync/atomic"

// bearer is a token as the Authorization header carries it. The values are shared by requests and never changed.
type bearer struct {
	token  string
	values []string
}

// bearers remembers the newest token that was checked, which most calls in a row share. Safe for concurrent use.
type bearers struct{ newest atomic.Pointer[bearer] }

// of returns a token's bearer, or an error that says why it cannot be a token.
func (b *bearers) of(token string) (*bearer, error) {
	if known := b.newest.Load(); known != nil && known.token == token {
		return known, nil
	}
	if err := checkToken(token); err != nil {
		return nil, err
	}
	made := &bearer{token, []string{"Bearer " + token}}
	b.newest.Store(made)
	return made, nil
}
