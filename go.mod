module github.com/lkrpc/lkrpc

go 1.26

require (
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/google/uuid v1.6.0
	github.com/twitchtv/twirp v8.1.3+incompatible
	google.golang.org/protobuf v1.36.12
)

require github.com/pkg/errors v0.9.1 // indirect
