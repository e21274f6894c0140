package auth

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxKeyFile is how much of a key file is read: room for thousands of keys.
const maxKeyFile = 1 << 20

// NewFileBasedKeyProvider reads a key file; see NewFileBasedKeyProviderFromReader. It is read once: later changes of the file take
// a new provider.
func NewFileBasedKeyProvider(path string) (*FileBasedKeyProvider, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("auth: key file: %w", err)
	}
	defer f.Close()
	p, err := NewFileBasedKeyProviderFromReader(f)
	if err != nil {
		return nil, fmt.Errorf("%w (key file %s)", err, path)
	}
	return p, nil
}

// NewFileBasedKeyProviderFromReader reads API keys and secrets, one pair a line, as livekit-server's key file has them:
//
//	# a comment
//	APIabcdef: the-secret
//	"APIghijkl": "another"  # quotes are optional
//
// This is the part of YAML that key files use; anything else in it is an error that names the line.
func NewFileBasedKeyProviderFromReader(r io.Reader) (*FileBasedKeyProvider, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxKeyFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("auth: keys: %w", err)
	case len(text) > maxKeyFile:
		return nil, fmt.Errorf("auth: keys: more than %d bytes", maxKeyFile)
	}
	secrets := map[string]string{}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) { // without the byte order mark
		n++
		key, secret, err := parseKeyLine(line)
		if _, twice := secrets[key]; twice && err == nil {
			err = fmt.Errorf("it has the key %q a second time", key)
		}
		if err != nil {
			return nil, fmt.Errorf("auth: keys: line %d: %w", n, err)
		}
		if key != "" {
			secrets[key] = secret
		}
	}
	p := &FileBasedKeyProvider{seal(secrets)}
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p, nil
}

// parseKeyLine reads one line; a blank one has no key. Its errors do not show the line, which may hold a secret.
func parseKeyLine(line string) (key, secret string, err error) {
	line = strings.TrimSpace(line)
	if line == "" || line == "---" || line[0] == '#' {
		return "", "", nil
	}
	key, rest, err := parseScalar(line, endsKey)
	if err != nil {
		return "", "", fmt.Errorf("its key %w", err)
	}
	rest, ok := strings.CutPrefix(rest, ":")
	if !ok {
		return "", "", errors.New(`it is not of the form "key: secret", with a space after the colon`)
	}
	secret, rest, err = parseScalar(strings.TrimSpace(rest), beginsComment)
	if err != nil {
		return "", "", fmt.Errorf("its secret %w", err)
	}
	if rest != "" && rest[0] != '#' {
		return "", "", errors.New("it goes on after the secret")
	}
	return key, secret, checkKeys(key, secret)
}

// endsKey tells whether the key ends at i: at a colon with white space or nothing behind it.
func endsKey(text string, i int) bool {
	return text[i] == ':' && (i+1 == len(text) || isBlank(text[i+1]))
}

// beginsComment tells whether a comment begins at i: # at the start or behind white space.
func beginsComment(text string, i int) bool {
	return text[i] == '#' && (i == 0 || isBlank(text[i-1]))
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// parseScalar splits a text at the end of its first value: behind the closing quote, or where end says.
func parseScalar(text string, end func(text string, i int) bool) (value, rest string, err error) {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		value, rest, ok := strings.Cut(text[1:], text[:1])
		switch {
		case !ok:
			return "", "", errors.New("has no closing quote")
		case text[0] == '"' && strings.Contains(value, `\`):
			return "", "", errors.New("has a backslash in double quotes: use single ones")
		}
		return value, strings.TrimSpace(rest), nil
	}
	if text != "" && strings.Contains("{}[]&*!|>%@`?,", text[:1]) || strings.HasPrefix(text, "- ") {
		return "", "", errors.New("begins with a character that means something else in YAML: put it in quotes")
	}
	value, rest = text, ""
	for i := range len(text) {
		if end(text, i) {
			value, rest = strings.TrimSpace(text[:i]), text[i:]
			break
		}
	}
	switch {
	case value == "~", strings.EqualFold(value, "null"):
		return "", "", errors.New("is YAML's word for nothing: put it in quotes")
	case strings.Contains(value, ": "), strings.HasSuffix(value, ":"):
		return "", "", errors.New("has a colon that means something else in YAML: put it in quotes")
	}
	return value, rest, nil
}
