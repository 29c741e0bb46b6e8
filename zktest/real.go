package zktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/javaserver"
)

// RequireEnv is the name of an environment variable. If it is set to anything but "0", [StartReal]
// fails a test that it would skip because there is no ZooKeeper.
const RequireEnv = "ZKTEST_REQUIRE_REAL"

// ErrNoZooKeeper is returned by [NewReal] if there is no Java on this machine, or if ZOOKEEPER_HOME is
// not set and Debian's package of ZooKeeper is not installed. Match it with [errors.Is].
var ErrNoZooKeeper = errors.New("zktest: no ZooKeeper on this machine")

const (
	startWithin   = 60 * time.Second // until all servers serve clients, on a busy machine
	startAttempts = 5                // each with other ports
)

// errPortTaken says that a start can succeed with other ports.
var errPortTaken = errors.New("a port was taken meanwhile")

// StartReal starts ZooKeeper and waits until all servers serve clients. It stops them when the test
// ends, and prints the ends of their logs if the test has failed. If there is no ZooKeeper on this
// machine the test is skipped, or fails if [RequireEnv] is set.
func StartReal(tb TB, opts ...RealOption) *Ensemble {
	tb.Helper()
	e, err := NewReal(opts...)
	if errors.Is(err, ErrNoZooKeeper) && !realRequired() {
		tb.Skipf("%v (set %s=1 to make this a failure)", err, RequireEnv)
		return nil
	}
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			for i := range e.Len() {
				tb.Logf("end of the log of server %d (%s):\n%s", i, e.Addr(i), e.servers[i].Log(8<<10))
			}
		}
		if err := e.Close(); err != nil {
			tb.Logf("%v", err)
		}
	})
	return e
}

func realRequired() bool {
	v := os.Getenv(RequireEnv)
	return v != "" && v != "0"
}

// NewReal is [StartReal] for programs and for TestMain. The caller must call [Ensemble.Close]. NewReal waits for the
// servers for at most a minute. The error matches [ErrNoZooKeeper] if there is no ZooKeeper on this machine. If an
// option is not valid, it returns an error before it starts anything.
func NewReal(opts ...RealOption) (*Ensemble, error) {
	c, err := newRealConfig(opts)
	if err != nil {
		return nil, err
	}
	in, err := javaserver.Find(ErrNoZooKeeper)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	var failed error
	for range startAttempts {
		e, err := startEnsemble(ctx, in, c)
		if err == nil {
			return e, nil
		}
		failed = err
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, failed
}

// startEnsemble makes one attempt, with ports that are free at the moment, and waits until all servers serve clients.
func startEnsemble(ctx context.Context, in javaserver.Installation, c realConfig) (*Ensemble, error) {
	ports, err := javaserver.FreePorts(c.servers + c.Observers)
	if err != nil {
		return nil, err
	}
	e, err := newEnsemble(in, c, ports)
	if err != nil {
		return nil, err
	}
	for i := range e.servers {
		if err = e.Launch(i); err != nil {
			break
		}
	}
	if err == nil {
		err = e.firstReady(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// newEnsemble writes the files of an ensemble, and starts no server.
func newEnsemble(in javaserver.Installation, c realConfig, ports []javaserver.Ports) (*Ensemble, error) {
	dir, err := os.MkdirTemp("", "zktest-")
	if err != nil {
		return nil, err
	}
	e := &Ensemble{dir: dir}
	conf := filepath.Join(dir, "conf")
	if err := javaserver.WriteLoggers(conf); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	seen, err := c.portsSeen(ports)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	for i := range ports {
		s, err := javaserver.NewServer(in, c.Config, filepath.Join(dir, fmt.Sprint("server", i)), conf, i, seen[i])
		e.servers = append(e.servers, s)
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

// firstReady is [Ensemble.WaitReady] for new servers, which may find their ports taken.
func (e *Ensemble) firstReady(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A server of an ensemble keeps running if one of its ports is taken, and never serves clients.
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if e.portTaken() {
					cancel(errPortTaken)
				}
			}
		}
	}()
	err := e.WaitReady(ctx)
	if err == nil {
		err = e.verify(ctx)
	}
	cancel(nil)
	<-watched
	if err != nil && e.portTaken() {
		return errors.Join(errPortTaken, err)
	}
	return err
}

// verify checks that the servers that answer are those of this ensemble. If a port was taken, the
// server of another test may answer there.
func (e *Ensemble) verify(ctx context.Context) error {
	for i, s := range e.servers {
		conf, err := e.Word(ctx, i, "conf")
		if err != nil {
			return err
		}
		if !strings.Contains(conf, filepath.ToSlash(s.Dir)) {
			return e.wrap("verify", i, errPortTaken)
		}
	}
	return nil
}

// portTaken reports whether a server's log says that one of its ports was taken.
func (e *Ensemble) portTaken() bool {
	return slices.ContainsFunc(e.servers, (*javaserver.Server).PortTaken)
}
