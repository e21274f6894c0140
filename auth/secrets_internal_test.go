package auth

import (
	"regexp"
	"slices"
	"testing"

	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// suspicious is what a field that holds a secret is called.
var suspicious = regexp.MustCompile(`secret|password|passwd|token|credential|key|url|endpoint|auth`)

// harmless are the fields with such names that hold none, and why.
var harmless = map[protoreflect.FullName]string{
	"livekit.S3Upload.access_key":                "says whose the secret is",
	"livekit.AliOSSUpload.access_key":            "says whose the secret is",
	"livekit.WebhookConfig.signing_key":          "an API key, whose secret stays on the server",
	"livekit.StreamOutput.destinations":          "its messages are looked at",
	"livekit.EncodingOptions.key_frame_interval": "of video",
}

// Every field beneath a room configuration that could hold a secret is in the tables, or is known to hold none. A new version of
// the schema that has more of them fails here.
func TestSecretFieldsAreKnown(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	used := map[protoreflect.FullName]bool{}
	var walk func(m protoreflect.MessageDescriptor)
	walk = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if f.Message() != nil {
				walk(f.Message())
			}
			listed := slices.Contains(secretFields[m.FullName()], f.Name()) || slices.Contains(urlFields[m.FullName()], f.Name())
			if listed && f.Kind() != protoreflect.StringKind {
				t.Errorf("%s is in a table but no text", f.FullName())
			}
			why := harmless[f.FullName()]
			if listed || why != "" {
				used[f.FullName()] = true
			}
			if suspicious.MatchString(string(f.Name())) && !m.IsMapEntry() && listed == (why != "") {
				t.Errorf("%s: in secretFields or urlFields: %t, harmless: %q; want one of the two", f.FullName(), listed, why)
			}
		}
	}
	walk((&livekit.RoomConfiguration{}).ProtoReflect().Descriptor())
	for _, table := range []map[protoreflect.FullName][]protoreflect.Name{secretFields, urlFields} {
		for message, fields := range table {
			for _, field := range fields {
				if !used[message.Append(field)] {
					t.Errorf("%s.%s is in a table but not beneath a room configuration", message, field)
				}
			}
		}
	}
	for field := range harmless {
		if !used[field] {
			t.Errorf("%s is called harmless but is not beneath a room configuration", field)
		}
	}
	if !seen[streamOutput] {
		t.Errorf("%s is not beneath a room configuration", streamOutput)
	}
}
