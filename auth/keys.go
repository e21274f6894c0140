package auth

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// KeyProvider finds the secret of an API key. Safe for concurrent use.
//
// Implement it to look secrets up elsewhere. If it also has a method Check() error, CheckKeyProvider calls it.
type KeyProvider interface {
	// GetSecret returns the secret of an API key, "" for one that is not known.
	GetSecret(key string) string
}

// CheckKeyProvider says what is wrong with a key provider: nil, no keys, an empty key or secret.
func CheckKeyProvider(keys KeyProvider) error {
	if v := reflect.ValueOf(keys); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("auth: the key provider is nil: use auth.NewSimpleKeyProvider or auth.NewFileBasedKeyProvider")
	}
	if keys, ok := keys.(interface{ Check() error }); ok {
		return keys.Check()
	}
	return nil
}

// SimpleKeyProvider knows one API key.
type SimpleKeyProvider struct {
	key    string
	secret sealed[string]
}

// NewSimpleKeyProvider returns a provider for one API key. That the key or the secret is empty is an error of Check, and so of
// whatever uses the provider.
func NewSimpleKeyProvider(key, secret string) *SimpleKeyProvider {
	return &SimpleKeyProvider{key, seal(secret)}
}

// Check says if the key or the secret is empty.
func (p *SimpleKeyProvider) Check() error { return checkKeys(p.key, p.secret.open()) }

// GetSecret returns the secret if the key is the provider's, else "".
func (p *SimpleKeyProvider) GetSecret(key string) string {
	if key != p.key {
		return ""
	}
	return p.secret.open()
}

// NumKeys returns 1.
func (p *SimpleKeyProvider) NumKeys() int { return 1 }

// String names the key.
func (p *SimpleKeyProvider) String() string {
	return fmt.Sprintf("auth.SimpleKeyProvider(%s, %s)", p.key, hidden)
}

// Format prints String for every verb.
func (p *SimpleKeyProvider) Format(f fmt.State, _ rune) { fmt.Fprint(f, p.String()) }

// LogValue logs String.
func (p *SimpleKeyProvider) LogValue() slog.Value { return slog.StringValue(p.String()) }

// FileBasedKeyProvider knows several API keys, from a file, a reader or a map.
type FileBasedKeyProvider struct {
	secrets sealed[map[string]string]
}

// NewFileBasedKeyProviderFromMap returns a provider for the secrets by API key. The map is copied. What is wrong with it is an
// error of Check, and so of whatever uses the provider.
func NewFileBasedKeyProviderFromMap(secrets map[string]string) *FileBasedKeyProvider {
	return &FileBasedKeyProvider{seal(maps.Clone(secrets))}
}

// Check says if there are no keys, or a key or secret is empty.
func (p *FileBasedKeyProvider) Check() error {
	if p.NumKeys() == 0 {
		return fmt.Errorf("%w: there are no keys", ErrKeysMissing)
	}
	for _, key := range p.names() {
		if err := checkKeys(key, p.secrets.open()[key]); err != nil {
			return fmt.Errorf("%w (key %q)", err, key)
		}
	}
	return nil
}

// GetSecret returns the secret of a key, "" for one that is not known.
func (p *FileBasedKeyProvider) GetSecret(key string) string { return p.secrets.open()[key] }

// NumKeys returns how many keys there are.
func (p *FileBasedKeyProvider) NumKeys() int { return len(p.secrets.open()) }

func (p *FileBasedKeyProvider) names() []string { return slices.Sorted(maps.Keys(p.secrets.open())) }

// String names the keys.
func (p *FileBasedKeyProvider) String() string {
	return fmt.Sprintf("auth.FileBasedKeyProvider(%s: %s)", strings.Join(p.names(), ", "), hidden)
}

// Format prints String for every verb.
func (p *FileBasedKeyProvider) Format(f fmt.State, _ rune) { fmt.Fprint(f, p.String()) }

// LogValue logs String.
func (p *FileBasedKeyProvider) LogValue() slog.Value { return slog.StringValue(p.String()) }
