package auth

import (
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// secretFields are the fields beneath a room configuration that are secret, by message. They name no code, so that a message
// which is reached in a new way is covered. A webhook's signing_key is not among them: it names an API key, and the secret of
// that key stays on the server. Neither are access keys and account names, which only say whose the secret is.
var secretFields = map[protoreflect.FullName][]protoreflect.Name{
	"livekit.S3Upload":          {"secret", "session_token"},
	"livekit.GCPUpload":         {"credentials"},
	"livekit.AzureBlobUpload":   {"account_key"},
	"livekit.AliOSSUpload":      {"secret"},
	"livekit.ProxyConfig":       {"password"},
	"livekit.StreamOutput":      {"urls"},
	"livekit.StreamDestination": {"url"},
}

// urlFields are the fields beneath a room configuration that hold a URL, which is secret only if it has a password in it.
var urlFields = map[protoreflect.FullName][]protoreflect.Name{
	"livekit.S3Upload":                   {"endpoint"},
	"livekit.AliOSSUpload":               {"endpoint"},
	"livekit.ProxyConfig":                {"url"},
	"livekit.WebhookConfig":              {"url"},
	"livekit.RoomCompositeEgressRequest": {"custom_base_url"},
}

// streamOutput is secret as a whole: what it is for is a URL with a stream key. LiveKit refuses it even when it is empty.
const streamOutput protoreflect.FullName = "livekit.StreamOutput"

const hidden = "[hidden]"

// secretsIn yields each secret in a message: its path in JSON names, and a function that replaces it.
func secretsIn(m proto.Message) iter.Seq2[string, func()] {
	return func(yield func(string, func()) bool) { eachSecret(m.ProtoReflect(), "", yield) }
}

func firstSecret(m proto.Message) (path string, found bool) {
	for path := range secretsIn(m) {
		return path, true
	}
	return "", false
}

// eachSecret returns false when yield wants no more. It goes by field number, so that the first secret is always the same.
func eachSecret(m protoreflect.Message, path string, yield func(string, func()) bool) bool {
	name := m.Descriptor().FullName()
	if name == streamOutput && !yield(path, func() {}) {
		return false
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) {
			continue
		}
		at := path + "." + f.JSONName()
		if path == "" {
			at = f.JSONName()
		}
		secret := slices.Contains(secretFields[name], f.Name()) ||
			slices.Contains(urlFields[name], f.Name()) && hasPassword(m.Get(f).String())
		if secret && !yield(at, func() { hide(m, f) }) || !eachSecretBelow(m.Get(f), f, at, yield) {
			return false
		}
	}
	return true
}

func eachSecretBelow(v protoreflect.Value, f protoreflect.FieldDescriptor, path string, yield func(string, func()) bool) bool {
	switch {
	case f.IsMap():
		if f.MapValue().Message() == nil {
			return true
		}
		more := true
		v.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			more = eachSecret(v.Message(), fmt.Sprintf("%s[%q]", path, key.String()), yield)
			return more
		})
		return more
	case f.Message() == nil:
		return true
	case f.IsList():
		list := v.List()
		for i := range list.Len() {
			if !eachSecret(list.Get(i).Message(), fmt.Sprintf("%s[%d]", path, i), yield) {
				return false
			}
		}
		return true
	}
	return eachSecret(v.Message(), path, yield)
}

// hide replaces a string, or each string of a list.
func hide(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	if !f.IsList() {
		m.Set(f, protoreflect.ValueOfString(hidden))
		return
	}
	list := m.Mutable(f).List()
	for i := range list.Len() {
		list.Set(i, protoreflect.ValueOfString(hidden))
	}
}

// hasPassword reports whether a URL has a password in it, or may have: of what is no URL with a host everything before an @ counts.
func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return strings.Contains(text, "@")
	}
	_, ok := u.User.Password()
	return ok
}
