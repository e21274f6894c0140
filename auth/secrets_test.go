package auth_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/proto"
)

// A token holds a storage secret or a stream key only if that is asked for, and it is never printed.
func TestSecretsInRoomConfig(t *testing.T) {
	for path, config := range secretConfigs() {
		t.Run(path, func(t *testing.T) {
			before := proto.CloneOf(config)
			token := auth.NewAccessToken(testKey, testSecret).SetRoomConfig(config)
			raw, err := token.ToJWT()
			wantKind(t, err, "ErrSensitiveCredentials")
			if raw != "" || !strings.Contains(err.Error(), "roomConfig."+path+":") || strings.Contains(err.Error(), "hush") {
				t.Errorf("%q, %v, want an error that names the field", raw, err)
			}
			_, err = auth.APIKey(testKey, testSecret).Token(background, &auth.ClaimGrants{RoomConfig: (*auth.RoomConfiguration)(config)})
			wantKind(t, err, "ErrSensitiveCredentials")

			raw = sign(t, token.SetAllowSensitiveCredentials(true))
			claims, err := auth.VerifyToken(raw, auth.NewSimpleKeyProvider(testKey, testSecret))
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(claims.GetRoomConfiguration(), before) {
				t.Errorf("the room configuration became %v", claims.RoomConfig)
			}
			shown, err := auth.Inspect(raw)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range printed(token, claims, claims.RoomConfig) {
				shown += text
			}
			if strings.Contains(shown, "hush") || !strings.Contains(shown, "[hidden]") {
				t.Errorf("not hidden in %s", shown)
			}
			if !proto.Equal(claims.GetRoomConfiguration(), before) || !proto.Equal(config, before) {
				t.Error("printing changed the room configuration")
			}
		})
	}
	config := harmlessConfig()
	if err := (*auth.RoomConfiguration)(config).CheckCredentials(); err != nil {
		t.Error(err)
	}
	if err := (*auth.RoomConfiguration)(nil).CheckCredentials(); err != nil {
		t.Error(err)
	}
	empty := &livekit.RoomConfiguration{Egress: &livekit.RoomEgress{Room: &livekit.RoomCompositeEgressRequest{StreamOutputs: []*livekit.StreamOutput{{}}}}}
	wantKind(t, (*auth.RoomConfiguration)(empty).CheckCredentials(), "ErrSensitiveCredentials")
}

// Nothing that holds a secret or a token shows it, whichever way it is printed.
func TestPrinting(t *testing.T) {
	raw := sign(t, auth.NewAccessToken(testKey, testSecret).SetIdentity("ann"))
	v, err := auth.ParseAPIToken(raw)
	if err != nil {
		t.Fatal(err)
	}
	token := auth.NewAccessToken(testKey, testSecret).SetIdentity("ann")
	simple := auth.NewSimpleKeyProvider(testKey, testSecret)
	file := auth.NewFileBasedKeyProviderFromMap(map[string]string{testKey: testSecret})
	signing := auth.APIKey(testKey, testSecret)
	if _, err := signing.Token(background, nil); err != nil { // which it keeps
		t.Fatal(err)
	}
	static := auth.StaticToken(raw)
	secrets := []string{testSecret, raw, raw[len(raw)-43:], fmt.Sprintf("%x", testSecret), fmt.Sprintf("%X", testSecret), fmt.Sprintf("%v", []byte(testSecret))}
	for name, c := range map[string]struct {
		value any
		says  string
	}{
		"AccessToken":          {token, "ann"},
		"APIKeyTokenVerifier":  {v, "ann"},
		"SimpleKeyProvider":    {simple, testKey},
		"FileBasedKeyProvider": {file, testKey},
		"APIKey":               {signing, testKey},
		"StaticToken":          {static, "StaticToken"},
		"a copied AccessToken": {*token, ""},
		"a copied verifier":    {*v, ""},
		"a copied provider":    {*simple, ""},
		"a copied file":        {*file, ""},
		"a struct":             {struct{ c []auth.Credentials }{[]auth.Credentials{signing, static}}, ""},
		"a struct with copies": {struct {
			t auth.AccessToken
			v auth.APIKeyTokenVerifier
			s auth.SimpleKeyProvider
			f auth.FileBasedKeyProvider
		}{*token, *v, *simple, *file}, ""},
	} {
		for _, text := range printed(c.value) {
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%s shows a secret or a token: %s", name, text)
				}
			}
			if !strings.Contains(text, c.says) {
				t.Errorf("%s does not say %s: %s", name, c.says, text)
			}
		}
	}
}

// printed returns values as fmt and slog show them.
func printed(values ...any) []string {
	var texts []string
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			texts = append(texts, fmt.Sprintf(verb, v))
		}
		var b strings.Builder
		slog.New(slog.NewJSONHandler(&b, nil)).Info("m", "v", v)
		slog.New(slog.NewTextHandler(&b, nil)).Info("m", "v", v)
		texts = append(texts, b.String())
	}
	return texts
}

// Of a URL that is none it cannot be told whether it has a password; what may be one counts.
func TestPasswordsInURLs(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                 false,
		"https://example.com":              false,
		"https://user@example.com":         false,
		"https://example.com/@user":        false,
		"proxy.example.com:3128":           false,
		"https://user:pass@example.com":    true,
		"https://user:@example.com":        true,
		"//user:pass@example.com":          true,
		"user:pass@proxy.example.com:3128": true,
		"http://user:pa%ss@proxy:3128":     true,
		"http://user:pa/ss@proxy:3128":     true,
		"http://user:pa ss@proxy:3128":     true,
		"http://us er:pass@proxy":          true,
		"http://user:pass@proxy:port":      true,
	} {
		config := (*auth.RoomConfiguration)(&livekit.RoomConfiguration{Egress: &livekit.RoomEgress{
			Room: &livekit.RoomCompositeEgressRequest{CustomBaseUrl: text}}})
		err := config.CheckCredentials()
		if (err != nil) != want || want && (strings.Contains(config.String(), text) || strings.Contains(err.Error(), text)) {
			t.Errorf("%q: %v, printed as %v; want it to count as a secret: %t", text, err, config, want)
		}
	}
}

// An error quotes no value: one of the wrong type in the place of a secret is still a secret.
func TestValuesInErrors(t *testing.T) {
	for _, secret := range []string{"4815162342", `["4815162342"]`, `{"a":"4815162342"}`, `\4815162342`, `4815162342"`, "true4815162342"} {
		text := `{"egress":{"room":{"fileOutputs":[{"s3":{"secret":` + secret + `}}]}}}`
		var config auth.RoomConfiguration
		err := config.UnmarshalJSON([]byte(text))
		if err == nil || strings.Contains(err.Error(), "48151") || !strings.Contains(err.Error(), "line 1:") {
			t.Errorf("%s: %v", secret, err)
		}
		event := `{"event":"ingress_started","ingressInfo":{"streamKey":` + secret + `}}`
		if _, err := auth.ParseWebhookEvent([]byte(event)); err == nil || strings.Contains(err.Error(), "48151") || !errors.Is(err, auth.ErrWebhookMalformed) {
			t.Errorf("webhook, %s: %v", secret, err)
		}
	}
}
