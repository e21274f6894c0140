package main

import (
	"strings"
	"testing"
)

// builders is what the code of protoc-gen-go ends with, as far as it matters here.
const builders = `package livekit

func init() {
	out := protoimpl.TypeBuilder{
		File: protoimpl.DescBuilder{
			NumEnums: 1,
		},
		GoTypes: goTypes,
	}.Build()
}
`

func TestUseOwnRegistry(t *testing.T) {
	const want = `package livekit

func init() {
	out := protoimpl.TypeBuilder{
		File: protoimpl.DescBuilder{
			NumEnums:     1,
			FileRegistry: Registry,
		},
		GoTypes:      goTypes,
		TypeRegistry: Registry,
	}.Build()
}
`
	got, err := useOwnRegistry([]byte(builders))
	if err != nil || string(got) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

// Code of another form would end up in the global registry, so it must not pass.
func TestUseOwnRegistryKnowsItsForm(t *testing.T) {
	for name, c := range map[string]struct{ src, err string }{
		"no builder":          {"package livekit\n", "0 literals"},
		"a renamed builder":   {strings.Replace(builders, "DescBuilder", "FileBuilder", 1), "0 literals of protoimpl.DescBuilder"},
		"an own builder":      {strings.Replace(builders, "protoimpl.DescBuilder", "DescBuilder", 1), "0 literals of protoimpl.DescBuilder"},
		"two of each":         {builders + strings.TrimPrefix(builders, "package livekit\n"), "2 literals"},
		"a registry is named": {strings.Replace(builders, "NumEnums: 1", "FileRegistry: nil", 1), "protoimpl.DescBuilder has a FileRegistry"},
		"not Go":              {"package", "expected"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := useOwnRegistry([]byte(c.src)); err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v with\n%s\nwant an error with %q", err, got, c.err)
			}
		})
	}
}
