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
)

// An Ensemble is one ZooKeeper server, or several that form a quorum. Each is a process of its own.
// Make one with [StartReal] or [NewReal].
//
// Servers are counted from 0. An index out of range panics, as with a slice. All methods are safe for
// concurrent use. They panic if the Ensemble was not made by StartReal or NewReal.
type Ensemble struct {
	dir     string
	servers []*javaserver.Server

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

// Len returns the number of servers, including those that do not run.
func (e *Ensemble) Len() int { return len(e.made().servers) }

// Addr returns the address, host:port, of server i. It never changes.
func (e *Ensemble) Addr(i int) string { return e.made().servers[i].Addr() }

// SecureAddr returns the address, localhost:port, at which server i serves TLS clients if the
// ensemble was started with [SecurePort]. It never changes.
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

// Launch starts server i with the ports and data that it had before. It does not wait until the server
// serves clients, so use it when there is no quorum yet. It is an error if the server is running.
func (e *Ensemble) Launch(i int) error {
	e.made()
	return e.wrap("launch", i, e.servers[i].Launch())
}

// Start is [Ensemble.Launch], and then waits until the server serves clients. It returns an error if the server's
// process ends or ctx ends first. In the second case, for example because there is no quorum, the server keeps running.
func (e *Ensemble) Start(ctx context.Context, i int) error {
	e.made()
	misuse.Context(ctx, "zktest: Ensemble.Start")
	if err := e.Launch(i); err != nil {
		return err
	}
	return e.wrap("start", i, e.servers[i].WaitServing(ctx))
}

// Stop ends server i with SIGTERM and waits until it is gone. Its clients see closed connections. A server that takes
// more than 15 seconds is killed, and Stop returns an error. Stop does nothing if the server is not running.
func (e *Ensemble) Stop(i int) error {
	e.made()
	return e.wrap("stop", i, e.servers[i].Stop())
}

// Kill ends server i with SIGKILL and waits until it is gone. It does nothing if the server is not running.
func (e *Ensemble) Kill(i int) error {
	e.made()
	return e.wrap("kill", i, e.servers[i].Kill())
}

// Pause stops server i with SIGSTOP. On Linux it waits until all threads of the server stand still. The server's
// connections stay open, and the kernel accepts new ones, but nothing is answered until [Ensemble.Resume]. It is an
// error if the server is not running, or if the system has no such signal.
func (e *Ensemble) Pause(i int) error {
	e.made()
	return e.wrap("pause", i, e.servers[i].SetPaused(true))
}

// Resume lets server i continue after [Ensemble.Pause]. If the server has missed too many pings of the other servers,
// it first leaves and rejoins the quorum. It is an error if the server is not running.
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

// WaitReady waits until every server serves clients, except servers that are stopped or paused. It
// returns an error if ctx ends first.
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

// Leader returns the index of the server that leads, which is 0 for a single server. It is an error if
// no server leads at the moment.
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

// Word sends one of ZooKeeper's four-letter words ("ruok", "stat", "cons", …) to server i and returns
// the answer. It returns when the server has answered or ctx ends. A paused server does not answer.
func (e *Ensemble) Word(ctx context.Context, i int, word string) (string, error) {
	e.made()
	misuse.Context(ctx, "zktest: Ensemble.Word")
	text, err := fourletter.Ask(ctx, e.Addr(i), word)
	return text, e.wrap(word, i, err)
}

// Metrics returns the metrics in server i's answer to the word mntr, by name: "zk_server_state", "zk_znode_count",
// "zk_watch_count", "zk_ephemerals_count" and many more. It is an error if the server does not serve clients.
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

// Log returns the end of server i's log, which covers all its runs. The log is gone after [Ensemble.Close].
func (e *Ensemble) Log(i int) string { return e.made().servers[i].Log(32 << 10) }

// Close kills all servers and removes their data. It returns once all processes and goroutines of the
// ensemble have ended. Later calls do nothing and return the same error.
func (e *Ensemble) Close() error {
	e.made()
	e.closing.Do(func() {
		var errs []error
		for i, s := range e.servers {
			errs = append(errs, e.wrap("close", i, s.Close()))
		}
		e.closeErr = errors.Join(append(errs, os.RemoveAll(e.dir))...)
	})
	return e.closeErr
}

func (e *Ensemble) wrap(what string, i int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("zktest: %s server %d (%s): %w", what, i, e.Addr(i), err)
}
