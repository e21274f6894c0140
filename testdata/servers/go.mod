module github.com/lkrpc/lkrpc/testdata/servers

go 1.26.0
