package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"os/exec"
	"path"

	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

// generate returns the text of every file of package livekit, by file name.
func generate(schema linker.Files) (map[string][]byte, error) {
	req := request(schema)
	messages, err := generateMessages(req)
	if err != nil {
		return nil, fmt.Errorf("protoc-gen-go: %w", err)
	}
	services, err := generateServices(req)
	if err != nil {
		return nil, fmt.Errorf("protoc-gen-twirp: %w", err)
	}
	code := map[string][]byte{}
	for _, f := range append(messages.File, services.File...) {
		name := path.Base(f.GetName())
		if _, twice := code[name]; twice {
			return nil, fmt.Errorf("%s: generated twice", name)
		}
		if code[name], err = format.Source([]byte(f.GetContent())); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, f := range messages.File {
		name := path.Base(f.GetName())
		if code[name], err = useOwnRegistry(code[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return code, nil
}

// request asks a generator for the code of the whole schema. Imports come before the files that import them, as generators
// expect.
func request(schema linker.Files) *pluginpb.CodeGeneratorRequest {
	req := &pluginpb.CodeGeneratorRequest{}
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		req.ProtoFile = append(req.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
	}
	for _, f := range schema {
		req.FileToGenerate = append(req.FileToGenerate, f.Path())
		add(f)
	}
	return req
}

func generateMessages(req *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	plugin, err := protogen.Options{}.New(req)
	if err != nil {
		return nil, err
	}
	for _, f := range plugin.Files {
		if f.Generate {
			internal_gengo.GenerateFile(plugin, f)
		}
	}
	return checked(plugin.Response())
}

// generateServices runs the plugin, whose package cannot be imported.
func generateServices(req *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	var out, stderr bytes.Buffer
	cmd := exec.Command("go", "tool", "protoc-gen-twirp")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	resp := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out.Bytes(), resp); err != nil {
		return nil, err
	}
	return checked(resp)
}

// checked returns the error that a generator puts into its response as one.
func checked(resp *pluginpb.CodeGeneratorResponse) (*pluginpb.CodeGeneratorResponse, error) {
	if resp.Error != nil {
		return nil, errors.New(resp.GetError())
	}
	return resp, nil
}
