package interop_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/zklock"
)

func init() {
	kinds["mutex"] = kind{exclusive, openMutex}
	kinds["zk.Lock"] = kind{exclusive, openZkLock}
}

func openMutex(t *testing.T, s *site) (take, error) {
	mx, err := zklock.New(connect(t), s.path)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (func() error, error) { return mx.Unlock, mx.Lock(ctx) }, nil
}

// openZkLock opens the lock of go-zookeeper. It knows no ctx; the end of its connection
// ends it.
func openZkLock(t *testing.T, s *site) (take, error) {
	conn, _, err := zk.Connect([]string{testserver.Server(t).Addr(0)}, testserver.Patience, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	t.Cleanup(conn.Close)
	lock := zk.NewLock(conn, s.path, zk.WorldACL(zk.PermAll))
	return func(context.Context) (func() error, error) { return lock.Unlock, lock.Lock() }, nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func TestMutex(t *testing.T) {
	for name, clients := range map[string][]client{
		"go and java":                   {{"go", "mutex"}, {"java", "mutex"}},
		"go, java and python":           {{"go", "mutex"}, {"java", "mutex"}, {"python", "mutex"}},
		"these and zk.Lock":             {{"go", "mutex"}, {"go", "zk.Lock"}, {"java", "mutex"}, {"python", "mutex"}},
		"go and python, as shipped":     {{"go", "mutex"}, {"python", "kazoo-mutex"}},
		"python, from one to the other": {{"go", "mutex"}, {"python", "kazoo-mutex"}, {"python", "mutex-too"}},
	} {
		t.Run(name, contest{clients: inTurn(clients...), first: 1, visits: 20}.run)
	}
}
