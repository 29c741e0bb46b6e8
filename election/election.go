package election

import (
	"errors"
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Election is one candidate for the leadership at a path, and a view of the others. Of all candidates
// at the path, in all processes, one leads at a time. While [Election.Run] is not called, an Election is
// no candidate and only shows which one leads.
//
// All methods may be called by any number of goroutines at once. They panic if [New] has not made
// the Election. Those that take a context panic if it is nil.
type Election struct {
	_ misuse.NoCopy

	mutex   *zklock.Mutex
	lock    *hold.Lock        // behind the mutex
	termEnd func(error) error // nil: the default

	mu      sync.Mutex
	running bool         // Run is
	now     *term        // lead runs in it; nil: lead does not run
	revoked *queue.Lease // of a leader that was asked to resign when lead did not run
}

// made returns e. It panics if e is nil or a zero value.
func (e *Election) made() *Election {
	if e == nil || e.mutex == nil {
		panic("election: Election not made by New")
	}
	return e
}

// New returns the election at path, an absolute path of ZooKeeper. The path is a directory of the
// election's own, which candidates create when it is missing and which goes away when it is not used.
// Names that come from users go through [zklock.EscapePath] first.
//
// New does no I/O. It returns an error that matches [session.ErrInvalid] for a nil manager, a bad
// path or a bad option.
func New(m *session.Manager, path string, opts ...Option) (*Election, error) {
	c := config{id: nodedata.Identity()}
	if err := hold.ApplyAll(opts, func(o Option) error { return o.apply(&c) }); err != nil {
		return nil, fmt.Errorf("election: %w", err)
	}
	e := &Election{termEnd: c.termEnd}
	mutex := []zklock.Option{zklock.WithData([]byte(c.id)), zklock.WithRevocable(e.resignFrom)}
	if c.name != "" {
		mutex = append(mutex, zklock.WithName(c.name))
	}
	if c.latch {
		mutex = append(mutex, zklock.WithLeaderLatch())
	}
	var err error
	if e.mutex, err = zklock.New(m, path, mutex...); err != nil {
		return nil, fmt.Errorf("election: %w", errors.Unwrap(err)) // without the name of package zklock
	}
	e.lock = hold.LockOf(e.mutex)
	e.lock.Request.Kind = candidacy(e.lock.Request.Kind)
	return e, nil
}

// candidacy returns the kind of an election's mutex. Messages and hooks call it an election, so that a
// leader, which holds for weeks, does not look like a lock that hangs. The names of its nodes say it too.
func candidacy(mutex *kinds.Kind) *kinds.Kind {
	election := *mutex
	election.Name = "election"
	election.Prefixes = append([]string{place.Candidate + mutex.Prefixes[0]}, mutex.Prefixes...)
	return &election
}

// Path returns the path that was given to [New].
func (e *Election) Path() string { return e.made().mutex.Path() }

// Manager returns the session manager that was given to [New].
func (e *Election) Manager() *session.Manager { return e.made().mutex.Manager() }

// IsLeader reports whether this Election leads. It goes by the clock at the time of the call, so it
// is false before another candidate can lead, also if the process was paused or is cut off from the
// servers. The answer can be out of date a moment later: work that only the leader may do belongs
// into the function of [Election.Run], whose context ends with the leadership.
func (e *Election) IsLeader() bool { return e.made().mutex.Held() }

// failed returns an error of the mutex as one of the election.
func (e *Election) failed(err error) error { return place.Failed("election", e.mutex.Path(), err) }
