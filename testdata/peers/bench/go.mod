module github.com/lkrpc/lkrpc/testdata/peers/bench

go 1.26.0
