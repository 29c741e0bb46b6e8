package faultmatrix

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// site is a real server and the clients that no fault is meant for.
type site struct {
	server  *zktest.Ensemble
	admin   *zk.Conn         // looks behind the library's back
	holders *session.Manager // of the first holders
	rivals  *session.Manager // of the clients behind
}

// pausable is the number of servers for pauses. A pause meets every client of a server, so each cell with
// a pause has a server of its own.
const pausable = 8

// sharing is for all other cells. Most of them wait, so an idle machine can serve more.
var sharing = flag.Int("sharing", 16, "how many cells share one server at a time")

// sites has all sites that were started.
var sites = struct {
	start  sync.Once // of common
	common *site
	err    error
	shares chan struct{} // one for each cell on the common site; made in TestMain

	idle  chan *site    // to be paused, and not in use
	slots chan struct{} // one for each of those that is still to be started

	mu  sync.Mutex // one starts at a time: that takes all of a processor
	all []*site
}{
	idle:  make(chan *site, pausable),
	slots: tickets(pausable),
}

func tickets(n int) chan struct{} {
	ch := make(chan struct{}, n)
	for range n {
		ch <- struct{}{}
	}
	return ch
}

// shared returns the server that is never paused, for as long as the test takes.
func shared(tb testing.TB) *site {
	tb.Helper()
	<-sites.shares
	tb.Cleanup(func() { sites.shares <- struct{}{} })
	return common(tb)
}

// common is shared without waiting for others to leave.
func common(tb testing.TB) *site {
	tb.Helper()
	sites.start.Do(func() { sites.common, sites.err = newSite() })
	return usable(tb, sites.common, sites.err)
}

// alone returns a server that no other cell uses before the test has ended.
func alone(tb testing.TB) *site {
	tb.Helper()
	select {
	case s := <-sites.idle:
		return borrowed(tb, s)
	default:
	}
	select {
	case s := <-sites.idle:
		return borrowed(tb, s)
	case <-sites.slots:
		s, err := newSite()
		if err != nil {
			sites.slots <- struct{}{}
		}
		return borrowed(tb, usable(tb, s, err))
	}
}

func borrowed(tb testing.TB, s *site) *site {
	tb.Cleanup(func() { sites.idle <- s })
	return s
}

func usable(tb testing.TB, s *site, err error) *site {
	tb.Helper()
	if errors.Is(err, zktest.ErrNoZooKeeper) {
		testserver.Missing(tb, err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func newSite() (*site, error) {
	sites.mu.Lock()
	defer sites.mu.Unlock()
	server, err := zktest.NewReal(zktest.TickTime(serverTick))
	if err != nil {
		return nil, err
	}
	s := &site{server: server}
	sites.all = append(sites.all, s)
	if s.admin, _, err = zk.Connect([]string{server.Addr(0)}, longTimeout, zk.WithLogger(nothing{})); err != nil {
		return nil, err
	}
	if s.holders, err = connect(server.Addr(0), longTimeout); err != nil {
		return nil, err
	}
	s.rivals, err = connect(server.Addr(0), longTimeout)
	return s, err
}

func closeSites() {
	for _, s := range sites.all {
		for _, m := range []*session.Manager{s.holders, s.rivals} {
			if m != nil {
				_ = m.Close()
			}
		}
		if s.admin != nil {
			s.admin.Close()
		}
		if err := s.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

type nothing struct{}

func (nothing) Printf(string, ...any) {}

// contenders returns the paths of all contenders at a path and below, once the server has
// answered.
func (s *site) contenders(ctx context.Context, dir string) ([]string, error) {
	names, err := s.children(ctx, dir)
	var found []string
	for _, name := range names {
		child := path.Join(dir, name)
		if _, ok := queue.ParseNode(name); ok {
			found = append(found, child)
			continue
		}
		below, e := s.contenders(ctx, child)
		found, err = append(found, below...), errors.Join(err, e)
	}
	return found, err
}

// children returns the names in a directory, or none if the directory does not exist.
func (s *site) children(ctx context.Context, dir string) (names []string, err error) {
	err = s.ask(ctx, func() error {
		names, _, err = s.admin.Children(dir)
		return err
	})
	return names, err
}

// stat returns the stat of a node, or nil if there is no node.
func (s *site) stat(ctx context.Context, node string) (stat *zk.Stat, err error) {
	err = s.ask(ctx, func() error {
		var there bool
		if there, stat, err = s.admin.Exists(node); !there {
			stat = nil
		}
		return err
	})
	return stat, err
}

// ask repeats a question until it is answered: the server may be paused.
func (s *site) ask(ctx context.Context, question func() error) error {
	for {
		err := question()
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case err == nil, ctx.Err() != nil, !errors.Is(err, zk.ErrConnectionClosed):
			return err
		}
	}
}
