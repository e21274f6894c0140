module github.com/lkrpc/lkrpc/proto/gen

go 1.26

tool github.com/twitchtv/twirp/protoc-gen-twirp

require (
	github.com/bufbuild/protocompile v0.14.1
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/pkg/errors v0.9.1 // indirect
	github.com/twitchtv/twirp v8.1.3+incompatible // indirect
	golang.org/x/sync v0.8.0 // indirect
)
