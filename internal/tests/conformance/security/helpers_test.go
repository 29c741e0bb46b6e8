// Package security tests which clients may use a lock that has an ACL, and that secrets appear in no
// log, error or trace. The tests cover all types of lock, against a real server.
package security

import (
	"context"
	"errors"
	"path"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// locker has the methods of all types of lock.
type locker interface {
	Lock(context.Context) error
	TryLock(context.Context) (bool, error)
	Unlock() error
	Do(context.Context, func(context.Context) error) error
	Acquire(context.Context) (*queue.Lease, error)
	TryAcquire(context.Context) (*queue.Lease, error)
	Contenders(context.Context) ([]queue.Contender, error)
}

// kinds are all types of lock.
var kinds = []struct {
	name string
	open func(m *session.Manager, path string) (locker, error)
}{
	{"mutex", func(m *session.Manager, path string) (locker, error) { return zklock.New(m, path) }},
	{"writer", func(m *session.Manager, path string) (locker, error) { return rwlock.New(m, path) }},
	{"reader", func(m *session.Manager, path string) (locker, error) {
		rw, err := rwlock.New(m, path)
		if err != nil {
			return nil, err
		}
		return rw.Reader(), nil
	}},
	{"semaphore", func(m *session.Manager, path string) (locker, error) { return semaphore.New(m, path, 2) }},
	{"semaphore of Curator", func(m *session.Manager, path string) (locker, error) {
		return semaphore.New(m, path, 2, semaphore.WithCuratorLayout())
	}},
}

// identity is the identity that may do everything with the locks of these tests.
const identity = "owner:correct-horse"

var acl = zk.DigestACL(zk.PermAll, "owner", "correct-horse")

// owner returns the options for the identity.
func owner(opts ...session.Option) []session.Option {
	return append(opts, session.WithAuth("digest", []byte(identity)), session.WithACL(acl...))
}

// admin returns a plain client with the identity.
func admin(tb testing.TB) *zk.Conn {
	tb.Helper()
	return plain(tb, identity)
}

// plain returns a plain client with some identities.
func plain(tb testing.TB, identities ...string) *zk.Conn {
	tb.Helper()
	c, _, err := zk.Connect([]string{testserver.Server(tb).Addr(0)}, testserver.Patience, zk.WithLogger(silence{}))
	expect.NoError(tb, err)
	tb.Cleanup(c.Close)
	for _, id := range identities {
		expect.NoError(tb, c.AddAuth("digest", []byte(id)))
	}
	return c
}

type silence struct{}

func (silence) Printf(string, ...any) {}

// tree returns all paths from root on.
func tree(tb testing.TB, c *zk.Conn, root string) []string {
	tb.Helper()
	out := []string{root}
	names, _, err := c.Children(root)
	if errors.Is(err, zk.ErrNoNode) {
		return nil // it left meanwhile
	}
	expect.NoError(tb, err)
	if len(names) == 0 && path.Base(root) == "locks" {
		return nil // of Curator's layout: servers remove a container that is empty, at any time
	}
	for _, name := range names {
		out = append(out, tree(tb, c, path.Join(root, name))...)
	}
	return out
}

func TestMain(m *testing.M) { testserver.Main(m) }
