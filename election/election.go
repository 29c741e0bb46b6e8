package election

import (
	"errors"
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Election is one candidate for the leadership at a path, and a view of the others. Of all candidates
// at the path, in all processes, one leads at a time. While [Election.Run] is not called, an Election is
// no candidate and only shows which one leads.
//
// All methods may be called by any number of goroutines at once. They panic if [New] has not made
// the Election. Those that take a context panic if it is nil.
type Election struct {
	_ misuse.NoCopy

	queue   *queue.Queue
	request queue.Request
	termEnd func(error) error // nil: the default
	rest    rest              // of Run

	mu      sync.Mutex
	running bool         // Run is
	held    *queue.Lease // the last that was granted; nil: none was
	now     *term        // lead runs in it; nil: lead does not run
}

// made returns e. It panics if e is nil or a zero value.
func (e *Election) made() *Election {
	if e == nil || e.queue == nil {
		panic("election: Election not made by New")
	}
	return e
}

// New returns the election at path, an absolute path of ZooKeeper. The path is a directory of the
// election's own, which candidates create when it is missing and which goes away when it is not used.
// Names that come from users go through zklock.EscapePath first.
//
// New does no I/O. It returns an error that matches [session.ErrInvalid] for a nil manager, a bad
// path or a bad option.
func New(m *session.Manager, path string, opts ...Option) (*Election, error) {
	c := config{id: queue.Identity()}
	var bad []error
	for _, o := range opts {
		if o == nil {
			bad = append(bad, fmt.Errorf("%w: nil option", session.ErrInvalid))
		} else {
			bad = append(bad, o.apply(&c))
		}
	}
	q, err := queue.New(m, path)
	if err != nil {
		bad = append(bad, errors.Unwrap(err)) // without the name of package queue
	}
	if err := errors.Join(bad...); err != nil {
		return nil, fmt.Errorf("election: %w", err)
	}
	e := &Election{queue: q, termEnd: c.termEnd}
	e.request = queue.Request{Kind: candidacy(c.latch), Data: []byte(c.id), Name: c.name}
	return e, nil
}

// candidate stands before the prefix in the names of candidates' nodes, as in _c_<uuid>-elect-lock-0000000007. Other
// clients go by what stands behind it.
const candidate = "elect-"

// candidacy returns the kind of lock of the candidates: a mutex, with the nodes of Curator's LeaderSelector and kazoo's
// Election, or of Curator's LeaderLatch. Messages and hooks call it an election, so that a leader, which holds for
// weeks, does not look like a lock that hangs. The names of its nodes say it too.
func candidacy(latch bool) *queue.Kind {
	kind := queue.Mutex()
	kind.Name = "election"
	if latch {
		kind.Prefixes = []string{queue.PrefixLatch}
	}
	kind.Prefixes = append([]string{candidate + kind.Prefixes[0]}, kind.Prefixes...)
	return kind
}

// Path returns the path that was given to [New].
func (e *Election) Path() string { return e.made().queue.Path() }

// Manager returns the session manager that was given to [New].
func (e *Election) Manager() *session.Manager { return e.made().queue.Manager() }

// IsLeader reports whether this Election leads. It goes by the clock at the time of the call, so it
// is false before another candidate can lead, also if the process was paused or is cut off from the
// servers. The answer can be out of date a moment later: work that only the leader may do belongs
// into the function of [Election.Run], whose context ends with the leadership.
func (e *Election) IsLeader() bool {
	e.made().mu.Lock()
	held := e.held
	e.mu.Unlock()
	return held != nil && held.Err() == nil
}

// failed returns an error as one of the election.
func (e *Election) failed(err error) error {
	return &queue.OpError{Op: "election", Path: e.queue.Path(), Err: err}
}
