package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// ensemble is one ZooKeeper ensemble. Its name decides which locks it has, not its connect
// string, because a new server in an ensemble must move no lock.
type ensemble struct {
	name    string
	servers string // connect string
}

// parseEnsemble reads name=connect-string.
func parseEnsemble(s string) (ensemble, error) {
	name, servers, ok := strings.Cut(s, "=")
	if !ok || name == "" || servers == "" {
		return ensemble{}, fmt.Errorf("%q: want name=host:port,host:port", s)
	}
	return ensemble{name, servers}, nil
}

// place returns which of the ensembles has the lock at a path: the one with the highest score
// for that path (rendezvous hashing). When an ensemble is added, a path moves only if the new
// ensemble has the highest score for it. The order of the names does not matter. There must be
// at least one.
func place(path string, names []string) string {
	return slices.MaxFunc(names, func(a, b string) int {
		x, y := score(path, a), score(path, b)
		if x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
}

// score must be the same in every process, for as long as the locks are used.
func score(path, name string) uint64 {
	sum := sha256.Sum256([]byte(name + "\x00" + path))
	return binary.BigEndian.Uint64(sum[:])
}

// shards has a session with each ensemble. All processes that share locks must use the same
// ensembles. If one process looks for a path in another ensemble, the lock has two holders.
type shards struct {
	names    []string
	managers map[string]*session.Manager
}

// connect opens a session with each ensemble.
func connect(ctx context.Context, ensembles []ensemble) (*shards, error) {
	s := &shards{managers: make(map[string]*session.Manager)}
	for _, e := range ensembles {
		if s.managers[e.name] != nil {
			return nil, errors.Join(fmt.Errorf("two ensembles are called %s", e.name), s.Close())
		}
		m, err := open(ctx, e)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", e.name, err), s.Close())
		}
		s.managers[e.name] = m
		s.names = append(s.names, e.name)
	}
	return s, nil
}

// open opens a session with an ensemble. It gives up after some seconds, so that a wrong -zk
// shows. Without a deadline, Connect waits until there is a server.
func open(ctx context.Context, e ensemble) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, e.servers, session.WithLogger(slog.New(slog.DiscardHandler)))
}

// mutex returns the lock at a path, in the ensemble that has it.
func (s *shards) mutex(path string) (*zklock.Mutex, error) {
	return zklock.New(s.managers[place(path, s.names)], path)
}

// locker is a Mutex or a pair.
type locker interface {
	Do(ctx context.Context, f func(context.Context) error) error
}

// movingMutex returns the lock at a path while the ensembles change. It takes the lock at the
// place where it was with the ensembles called before, and at the place where it is with all
// ensembles. To change the ensembles, first have all processes use movingMutex, and then have
// all of them use mutex with the new ensembles. So at any time any two processes have one
// place in common.
func (s *shards) movingMutex(path string, before []string) (locker, error) {
	names := []string{place(path, before), place(path, s.names)}
	slices.Sort(names) // all processes have to take the two in one order
	first, err := zklock.New(s.managers[names[0]], path)
	if err != nil {
		return nil, err
	}
	if names[0] == names[1] {
		return first, nil
	}
	second, err := zklock.New(s.managers[names[1]], path)
	if err != nil {
		return nil, err
	}
	return pair{first, second}, nil
}

// pair is two mutexes that are held together.
type pair struct{ first, second *zklock.Mutex }

// Do calls f while it holds both. The context of f ends when either is lost.
func (p pair) Do(ctx context.Context, f func(context.Context) error) error {
	return p.first.Do(ctx, func(ctx context.Context) error { return p.second.Do(ctx, f) })
}

func (s *shards) Close() error {
	var errs []error
	for _, m := range s.managers {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
