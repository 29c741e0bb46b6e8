module github.com/turnstile-go/turnstile

go 1.25.0

require (
	github.com/cenkalti/backoff/v5 v5.0.3
	github.com/go-zookeeper/zk v1.0.4
	github.com/google/uuid v1.6.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.22.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/google/go-cmp v0.7.0 // indirect
)
