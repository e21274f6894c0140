package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lkrpc/lkrpc/auth"
)

func TestKeyFile(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[string]string
		err  string // what the error says
	}{
		"one":               {"APIa: s1\n", map[string]string{"APIa": "s1"}, ""},
		"no newline":        {"APIa: s1", map[string]string{"APIa": "s1"}, ""},
		"two":               {"APIa: s1\nAPIb: s2\n", map[string]string{"APIa": "s1", "APIb": "s2"}, ""},
		"CRLF":              {"APIa: s1\r\nAPIb: s2\r\n", map[string]string{"APIa": "s1", "APIb": "s2"}, ""},
		"blanks, comments":  {"---\n# keys\n\n  APIa:\t s1  # the first\n#APIb: s2\n", map[string]string{"APIa": "s1"}, ""},
		"quotes":            {"\"APIa\": \"s1 # s\"\n'APIb' : 's:2\"\\'  # c\n", map[string]string{"APIa": "s1 # s", "APIb": `s:2"\`}, ""},
		"marks in values":   {"a:b: s:1#2\n", map[string]string{"a:b": "s:1#2"}, ""},
		"byte order mark":   {"\ufeffAPIa: s1\n", map[string]string{"APIa": "s1"}, ""},
		"empty":             {"", nil, "no keys"},
		"only comments":     {"# nothing\n", nil, "no keys"},
		"no colon":          {"APIa: s1\nhush\n", nil, "line 2: it is not of the form"},
		"no space":          {"APIa:hush\n", nil, "line 1: it is not of the form"},
		"no key":            {": hush\n", nil, "line 1: auth: API key or secret missing: the API key is empty"},
		"no secret":         {"APIa:\n", nil, "line 1: auth: API key or secret missing: the secret is empty"},
		"no secret, quoted": {"APIa: ''\n", nil, "the secret is empty"},
		"only a comment":    {"APIa: # hush\n", nil, "the secret is empty"},
		"blank in quotes":   {"APIa: ' hush'\n", nil, "secret begins or ends with white space"},
		"twice":             {"APIa: s1\nAPIa: hush\n", nil, `line 2: it has the key "APIa" a second time`},
		"open quote":        {"APIa: 'hush\n", nil, "line 1: its secret has no closing quote"},
		"escape":            {`APIa: "hu\nsh"`, nil, "its secret has a backslash"},
		"more":              {"APIa: 'hush' hush\n", nil, "it goes on after the secret"},
		"escaped quote":     {"APIa: 'hu''sh'\n", nil, "it goes on after the secret"},
		"flow":              {"{APIa: hush}\n", nil, "its key begins with a character"},
		"list":              {"- APIa: hush\n", nil, "its key begins with a character"},
		"anchor":            {"APIa: &hush s\n", nil, "its secret begins with a character"},
		"block":             {"APIa: |\n  hush\n", nil, "line 1: its secret begins with a character"},
		"nothing":           {"APIa: ~\n", nil, "line 1: its secret is YAML's word for nothing"},
		"null":              {"APIa: Null # c\n", nil, "line 1: its secret is YAML's word for nothing"},
		"null in quotes":    {"APIa: 'null'\n", map[string]string{"APIa": "null"}, ""},
		"colon and space":   {"APIa: hush: hush\n", nil, "line 1: its secret has a colon"},
		"colon at the end":  {"APIa: hush:\n", nil, "line 1: its secret has a colon"},
		"no UTF-8":          {"API\xff: hush\n", nil, "UTF-8"},
		"too long":          {"# " + strings.Repeat("x", 1<<20), nil, "more than 1048576 bytes"},
		"too many":          {strings.Repeat("# 45678\n", 1<<17) + "APIa: s1\n", nil, "more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := auth.NewFileBasedKeyProviderFromReader(iotest.HalfReader(strings.NewReader(c.text)))
			if c.err != "" {
				if err == nil || p != nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "hush") {
					t.Errorf("%v, %v, want an error that says %s", p, err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.NumKeys() != len(c.want) || p.GetSecret("") != "" || p.GetSecret("other") != "" {
				t.Errorf("%d keys: %v, want %d", p.NumKeys(), p, len(c.want))
			}
			for key, secret := range c.want {
				if got := p.GetSecret(key); got != secret {
					t.Errorf("secret of %q is %q, want %q", key, got, secret)
				}
			}
		})
	}
	broken := errors.New("broken")
	if _, err := auth.NewFileBasedKeyProviderFromReader(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("%v, want the reader's error", err)
	}
}

func TestKeyFileOnDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	if _, err := auth.NewFileBasedKeyProvider(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that the file does not exist", err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("nonsense\n")
	if _, err := auth.NewFileBasedKeyProvider(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want an error that names the file", err)
	}
	write(testKey + ": " + testSecret + "\n")
	keys, err := auth.NewFileBasedKeyProvider(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := auth.VerifyToken(sign(t, auth.NewAccessToken(testKey, testSecret)), keys); err != nil {
		t.Error(err)
	}
}

func TestKeyMap(t *testing.T) {
	secrets := map[string]string{testKey: testSecret, "APIb": "s2"}
	keys := auth.NewFileBasedKeyProviderFromMap(secrets)
	delete(secrets, testKey)
	for _, c := range []struct{ key, secret string }{{testKey, testSecret}, {"APIb", "s2"}} {
		if _, err := auth.VerifyToken(sign(t, auth.NewAccessToken(c.key, c.secret)), keys); err != nil {
			t.Error(err)
		}
	}
	for _, secrets := range []map[string]string{nil, {}, {"": "s"}, {"k": ""}, {"a": "s", "k": ""}} {
		wantKind(t, auth.CheckKeyProvider(auth.NewFileBasedKeyProviderFromMap(secrets)), "ErrKeysMissing")
	}
	for _, keys := range []auth.KeyProvider{nil, (*auth.SimpleKeyProvider)(nil), (*auth.FileBasedKeyProvider)(nil)} {
		if err := auth.CheckKeyProvider(keys); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%v, want that the provider is nil", err)
		}
		if _, err := auth.VerifyToken("", keys); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%v, want that the provider is nil", err)
		}
	}
}

// vault is a key provider of a caller's own.
type vault map[string]string

func (v vault) GetSecret(key string) string { return v[key] }

func TestOwnKeyProvider(t *testing.T) {
	keys := vault{testKey: testSecret, "": testSecret}
	_, err := auth.VerifyToken(sign(t, auth.NewAccessToken(testKey, testSecret)), keys)
	wantKind(t, err, "")
	_, err = auth.VerifyToken(sign(t, auth.NewAccessToken("APIother", testSecret)), keys)
	wantKind(t, err, "ErrTokenIssuer")
}
