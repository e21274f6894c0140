module github.com/lkrpc/lkrpc/examples/backend

go 1.26.0

replace (
	github.com/lkrpc/lkrpc => ../..
	github.com/lkrpc/lkrpc/testdata/servers => ../../testdata/servers
)

require (
	github.com/lkrpc/lkrpc v0.0.0-00010101000000-000000000000
	github.com/lkrpc/lkrpc/testdata/servers v0.0.0-00010101000000-000000000000
	github.com/prometheus/client_golang v1.25.0
	github.com/twitchtv/twirp v8.1.3+incompatible
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
