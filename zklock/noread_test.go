package zklock_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A client with all rights in one directory, and none above it, makes locks there. From 3.9 on, servers do not tell it
// whether a node exists that it may not read.
func TestNoRightAbove(t *testing.T) {
	for what, start := range map[string]func(*testing.T) string{
		"in the process, like 3.9": func(t *testing.T) string { return zktest.Start(t, zktest.Version("3.9")).ConnectString() },
		"real":                     func(t *testing.T) string { longtest.InCI(t); return zktest.StartReal(t).ConnectString() },
	} {
		t.Run(what, func(t *testing.T) {
			servers := start(t)
			operator, _, err := zk.Connect([]string{servers}, 10*time.Second, zk.WithLogInfo(false))
			must(t, err)
			defer operator.Close()
			must(t, expect.Err(operator.Create("/app", nil, 0, zk.WorldACL(zk.PermAll))))
			must(t, operator.AddAuth("digest", []byte("operator:secret")))
			must(t, expect.Err(operator.SetACL("/", zk.DigestACL(zk.PermAll, "operator", "secret"), -1)))
			m, err := session.Connect(patient(t), servers)
			must(t, err)
			defer func() { must(t, m.Close()) }()
			mx, err := zklock.New(m, "/app/locks/a")
			must(t, err)
			must(t, mx.Lock(patient(t)))
			must(t, mx.Unlock())
		})
	}
}
