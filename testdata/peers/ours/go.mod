module github.com/lkrpc/lkrpc/testdata/peers/ours

go 1.26.0

replace (
	github.com/lkrpc/lkrpc => ../../..
	github.com/lkrpc/lkrpc/testdata/peers/bench => ../bench
)

require (
	github.com/google/uuid v1.6.0
	github.com/lkrpc/lkrpc v0.0.0-00010101000000-000000000000
	github.com/lkrpc/lkrpc/testdata/peers/bench v0.0.0-00010101000000-000000000000
	github.com/twitchtv/twirp v8.1.3+incompatible
)

require (
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
