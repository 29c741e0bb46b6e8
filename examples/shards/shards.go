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

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// ensemble is one ZooKeeper ensemble. Its name is what decides which locks it has, and not
// its connect string: a server more in an ensemble must move no lock.
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

// place returns which of the ensembles has the lock at a path: that which scores highest.
// With one ensemble more, only those paths move for which the new one does: rendezvous
// hashing. The order of the names does not matter. There must be one at least.
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

// shards has a session with each ensemble. All processes that share locks must have the same
// ensembles: where one of them puts a path elsewhere, the lock has two holders.
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
		// The name is the same in all processes, which may call the servers differently: Multi
		// goes by it.
		m, err := session.Connect(ctx, e.servers, session.WithName(e.name), session.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", e.name, err), s.Close())
		}
		s.managers[e.name] = m
		s.names = append(s.names, e.name)
	}
	return s, nil
}

// mutex returns the lock at a path, in the ensemble that has it.
func (s *shards) mutex(path string) (*zklock.Mutex, error) {
	return zklock.New(s.managers[place(path, s.names)], path)
}

// locker is what a mutex and several of them as one have in common.
type locker interface {
	Lock(context.Context) error
	Unlock() error
}

// movingMutex returns the lock at a path while the ensembles change: both where it was
// with those of the given names, and where it is with all. To change them, first all
// processes take this, then all take mutex, with the new ensembles; at no time does any
// two of them fail to meet in one place.
func (s *shards) movingMutex(path string, before []string) (locker, error) {
	old, now := place(path, before), place(path, s.names)
	a, err := zklock.New(s.managers[old], path)
	if err != nil {
		return nil, err
	}
	if old == now {
		return a, nil
	}
	b, err := zklock.New(s.managers[now], path)
	if err != nil {
		return nil, err
	}
	return zklock.Multi(a, b)
}

func (s *shards) Close() error {
	var errs []error
	for _, m := range s.managers {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
