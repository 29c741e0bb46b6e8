//go:build linux

package disks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	tick = 2 * time.Second // ZooKeeper's default
	// certainly bounds the wait for what must happen, on a busy machine.
	certainly = 2 * time.Minute
	path      = "/disks/lock"
	another   = "/disks/another"
)

// site is an ensemble whose servers have disks that can be made bad.
type site struct {
	*testing.T
	e     *zktest.Ensemble
	disks []disk
	ctx   context.Context
}

func newSite(t *testing.T, servers int, opts ...zktest.RealOption) *site {
	t.Helper()
	opts = append([]zktest.RealOption{
		zktest.Nodes(servers), zktest.TickTime(tick), zktest.MaxSessionTimeout(20 * tick),
		zktest.Environ("LD_PRELOAD", library(t)),
		zktest.Property("forceSync", "yes"), // ZooKeeper's default, and not that of zktest
	}, opts...)
	s := &site{T: t, e: zktest.StartReal(t, opts...)}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	s.ctx = ctx
	for i := range servers {
		d, err := diskOf(ctx, s.e, i)
		s.must(err)
		s.disks = append(s.disks, d)
	}
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// mutex returns the lock at a path, of a client with a session of its own.
func (s *site) mutex(servers, path string, timeout time.Duration) *zklock.Mutex {
	s.Helper()
	m, err := session.Connect(s.ctx, servers, session.WithTimeout(timeout), session.WithTickTime(tick),
		session.WithLogger(slog.New(slog.DiscardHandler)))
	s.must(err)
	s.Cleanup(func() { _ = m.Close() }) // its server may be gone
	mx, err := zklock.New(m, path)
	s.must(err)
	return mx
}

// take takes the lock, and returns its token too.
func (s *site) take(mx *zklock.Mutex) (*queue.Lease, int64) {
	s.Helper()
	lease, err := mx.Acquire(s.ctx)
	s.must(err)
	token, err := lease.Token(s.ctx)
	s.must(err)
	return lease, token
}

// cutPower kills all servers at once, drops what they have not synced, and starts them again.
func (s *site) cutPower() {
	s.Helper()
	s.all(s.e.Kill)
	for _, d := range s.disks {
		s.must(d.cutPower())
	}
	s.all(s.e.Launch)
	s.must(s.e.WaitReady(s.ctx))
}

// all does something to all servers at once.
func (s *site) all(do func(int) error) {
	s.Helper()
	errs := make([]error, s.e.Len())
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	s.must(errors.Join(errs...))
}

// plain returns a client of one server, without the library.
func (s *site) plain(i int) *zk.Conn {
	s.Helper()
	conn, _, err := zk.Connect([]string{s.e.Addr(i)}, 10*time.Second, zk.WithLogger(silent{}))
	s.must(err)
	s.Cleanup(conn.Close)
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// write creates numbered nodes until one fails, and returns the number that is next.
func write(conn *zk.Conn, from, to int) int {
	for n := from; n < to; n++ {
		if _, err := conn.Create(numbered(n), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			return n
		}
	}
	return to
}

func numbered(n int) string { return fmt.Sprintf("/acknowledged-%d", n) }

// missing returns how many of the first n nodes are not there.
func (s *site) missing(conn *zk.Conn, n int) (count int) {
	s.Helper()
	for i := range n {
		there, _, err := conn.Exists(numbered(i))
		s.must(err)
		if !there {
			count++
		}
	}
	return count
}

func (s *site) eventually(what string, ok func() bool) {
	s.Helper()
	zktest.Eventually(s, certainly, what, ok)
}

// contend has a contender wait for the lock at a path, which is held. The channel has the end of its Acquire.
func (s *site) contend(mx *zklock.Mutex) <-chan error {
	s.Helper()
	granted := make(chan error, 1)
	go func() {
		_, err := mx.Acquire(s.ctx)
		granted <- err
	}()
	conn := s.plain(0)
	s.eventually("a contender for "+mx.Path(), func() bool {
		names, _, err := conn.Children(mx.Path())
		return err == nil && len(names) == 2
	})
	return granted
}

// leader returns the server that leads.
func (s *site) leader() int {
	s.Helper()
	i, err := s.e.Leader(s.ctx)
	s.must(err)
	return i
}

// well makes all disks well.
func (s *site) well() {
	s.Helper()
	for _, d := range s.disks {
		s.must(d.well())
	}
}
