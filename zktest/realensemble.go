package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/zktest/internal/fourletter"
	"github.com/turnstile-go/turnstile/zktest/internal/javaserver"
	"github.com/turnstile-go/turnstile/zktest/internal/peerlink"
)

// An Ensemble is one ZooKeeper server or several that form a quorum, each a
// process of its own. Make one with [StartReal] or [NewReal].
//
// Servers are counted from 0; an index out of range panics, as with a slice.
// All methods are safe for concurrent use. They panic if neither StartReal nor NewReal has
// made the Ensemble.
type Ensemble struct {
	dir     string
	servers []*javaserver.Server
	links   peerlink.Links // nil without Partitions

	closing  sync.Once
	closeErr error
}

// made returns e. It panics if e is nil or a zero value.
func (e *Ensemble) made() *Ensemble {
	if e == nil || e.dir == "" {
		panic("zktest: Ensemble not made by StartReal or NewReal")
	}
	return e
}

// Len returns the number of servers, running or not.
func (e *Ensemble) Len() int { return len(e.made().servers) }

// Addr returns the address, host:port, of server i. It never changes.
func (e *Ensemble) Addr(i int) string { return e.made().servers[i].Addr() }

// SecureAddr returns the address, localhost:port, at which server i takes TLS clients, where
// it was started with [SecurePort]. It never changes.
func (e *Ensemble) SecureAddr(i int) string {
	e.made()
	return net.JoinHostPort("localhost", strconv.Itoa(e.servers[i].Secure))
}

// ConnectString returns the addresses of all servers, separated by commas.
func (e *Ensemble) ConnectString() string {
	e.made()
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.Addr()
	}
	return strings.Join(addrs, ",")
}

// Launch starts server i on the ports and data it had before and returns
// without waiting for it to serve: for a server that cannot serve yet, because
// the quorum is lost. It is an error if the server is running.
func (e *Ensemble) Launch(i int) error {
	e.made()
	return e.wrap("launch", i, e.servers[i].Launch())
}

// Start is [Ensemble.Launch] and then waits until the server serves clients or
// its process ends or ctx does, the latter two being errors. Without a quorum
// the server never serves, but it does keep running when Start gives up.
func (e *Ensemble) Start(ctx context.Context, i int) error {
	e.made()
	misuse.Context(ctx, "zktest: Ensemble.Start")
	if err := e.Launch(i); err != nil {
		return err
	}
	return e.wrap("start", i, e.servers[i].WaitServing(ctx))
}

// Stop ends server i with SIGTERM and waits until it is gone, which leaves its
// clients with closed connections. A server that takes more than 15 seconds is
// killed, and that is an error. Stopping a server that is not running does
// nothing.
func (e *Ensemble) Stop(i int) error {
	e.made()
	return e.wrap("stop", i, e.servers[i].Stop())
}

// Kill ends server i with SIGKILL and waits until it is gone. Killing a server
// that is not running does nothing.
func (e *Ensemble) Kill(i int) error {
	e.made()
	return e.wrap("kill", i, e.servers[i].Kill())
}

// Pause stops server i with SIGSTOP and, on Linux, waits until all its threads
// stand still. Its connections stay open and new ones are accepted, by the
// kernel, but nothing is answered until [Ensemble.Resume]. It is an error if
// the server is not running, or where there are no such signals.
func (e *Ensemble) Pause(i int) error {
	e.made()
	return e.wrap("pause", i, e.servers[i].SetPaused(true))
}

// Resume lets server i go on after [Ensemble.Pause]. A server that has missed
// enough of its peers' pings meanwhile leaves and rejoins the quorum first.
// It is an error if the server is not running.
func (e *Ensemble) Resume(i int) error {
	e.made()
	return e.wrap("resume", i, e.servers[i].SetPaused(false))
}

// Restart is [Ensemble.Kill] followed by [Ensemble.Start].
func (e *Ensemble) Restart(ctx context.Context, i int) error {
	e.made()
	misuse.Context(ctx, "zktest: Ensemble.Restart")
	if err := e.Kill(i); err != nil {
		return err
	}
	return e.Start(ctx, i)
}

// WaitReady waits until every server serves clients, apart from those that are
// stopped or paused. It returns an error when ctx ends first.
func (e *Ensemble) WaitReady(ctx context.Context) error {
	e.made()
	misuse.Context(ctx, "zktest: Ensemble.WaitReady")
	for i, s := range e.servers {
		if !s.Awake() {
			continue
		}
		if err := s.WaitServing(ctx); err != nil {
			return e.wrap("wait for", i, err)
		}
	}
	return nil
}

// Leader returns the index of the server that leads, or of the only one. It is
// an error if no server does just now.
func (e *Ensemble) Leader(ctx context.Context) (int, error) {
	e.made()
	misuse.Context(ctx, "zktest: Ensemble.Leader")
	for i, s := range e.servers {
		if !s.Awake() {
			continue
		}
		if m, err := s.Mode(ctx); err == nil && (m == "leader" || m == "standalone") {
			return i, nil
		}
	}
	return 0, errors.Join(errors.New("zktest: no server leads"), ctx.Err())
}

// Word sends one of ZooKeeper's four-letter words ("ruok", "stat", "cons", …)
// to server i and returns the answer. It returns when the server has answered
// or ctx ends; a paused server does not answer.
func (e *Ensemble) Word(ctx context.Context, i int, word string) (string, error) {
	e.made()
	misuse.Context(ctx, "zktest: Ensemble.Word")
	text, err := fourletter.Ask(ctx, e.Addr(i), word)
	return text, e.wrap(word, i, err)
}

// Metrics returns what server i says to mntr, by name: "zk_server_state",
// "zk_znode_count", "zk_watch_count", "zk_ephemerals_count" and many more. A
// server that does not serve clients is an error.
func (e *Ensemble) Metrics(ctx context.Context, i int) (map[string]string, error) {
	e.made()
	misuse.Context(ctx, "zktest: Ensemble.Metrics")
	text, err := e.Word(ctx, i, "mntr")
	if err != nil {
		return nil, err
	}
	metrics := fourletter.Metrics(text)
	if len(metrics) == 0 {
		return nil, e.wrap("mntr", i, fmt.Errorf("server says: %s", strings.TrimSpace(text)))
	}
	return metrics, nil
}

// Log returns the end of what server i has printed, over all its runs. It is
// gone after [Ensemble.Close].
func (e *Ensemble) Log(i int) string { return e.made().servers[i].Log(32 << 10) }

// Close kills all servers and removes their data. No goroutine or process of
// the ensemble's is left. Later calls do nothing and return the same.
func (e *Ensemble) Close() error {
	e.made()
	e.closing.Do(func() {
		errs := make([]error, 0, len(e.servers)+2)
		for i, s := range e.servers {
			errs = append(errs, e.wrap("close", i, s.Close()))
		}
		errs = append(errs, e.links.Close(), os.RemoveAll(e.dir))
		e.closeErr = errors.Join(errs...)
	})
	return e.closeErr
}

func (e *Ensemble) wrap(what string, i int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("zktest: %s server %d (%s): %w", what, i, e.Addr(i), err)
}
