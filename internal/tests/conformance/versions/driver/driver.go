// Package driver is a process that uses the locks of one version of this module as a test asks it to, by net/rpc on its
// standard input and output. It uses only what both versions have.
package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/rpc"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Environment variables of the process.
const (
	ServersEnv = "TURNSTILE_VERSIONS_SERVERS"
	TimeoutEnv = "TURNSTILE_VERSIONS_TIMEOUT" // of its sessions
)

// Method is the only method of the server. Its errors begin with a word and a colon. The word does not depend on the
// version.
const Method = "Driver.Do"

// A Request is the argument of Method.
type Request struct {
	Verb string
	Of   int    // the hold that is meant
	Lock Lock   // what to acquire, or to ask about
	Node string // of the contender to revoke
}

// The verbs about holds. The others are those of ask.
const (
	Acquire   = "acquire"   // answered when the process has a new hold
	Try       = "try"       // the same, and does not wait
	Downgrade = "downgrade" // the write lock of a hold is also a read lock, which is a new hold
	Held      = "held"      // answered with "true" or "false"
	Revoked   = "revoked"   // answered when somebody wants the hold released
	Release   = "release"   // answered when the release has returned
	Fail      = "fail"      // of a job: its function returns an error
)

// A Lock says what to acquire and how.
type Lock struct {
	Kind   string
	Path   string
	Others []string // the other paths of several locks together
	Key    string   // of a lock for each key, or the ID of a candidate
	Leases int      // the limit of a semaphore
	N      int      // how many leases, if not one
	Tick   int64    // of a job
}

// An Answer is the reply of Method.
type Answer struct {
	Hold  int    // what Of means in later requests
	Node  string // of the hold
	Value string // of what was asked
}

// hold is what an acquisition got.
type hold struct {
	node      string
	held      func() bool // false is for good
	revoked   <-chan struct{}
	release   func(ctx context.Context, failed error) error // called once; only jobs can fail
	downgrade func() (*hold, error)                         // of a write lock that has an owner
}

const (
	patience  = 20 * time.Second       // bounds a release, and what is asked
	tick      = 200 * time.Millisecond // of the servers of the tests
	kept      = time.Minute            // how long a place is kept: longer than any test
	handovers = 2
)

// Driver is a process at work.
type Driver struct {
	m   *session.Manager
	ctx context.Context

	mu    sync.Mutex // guards what follows
	holds []*hold
	made  map[string]any // the locks, by what they are
}

// stdio is the connection of the process. Its end ends the requests that wait.
type stdio struct {
	io.Reader
	io.WriteCloser
	end func()
}

func (s stdio) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil {
		s.end()
	}
	return n, err
}

// Main is the whole process. It carries out requests until there are no more.
func Main() error {
	timeout, err := time.ParseDuration(os.Getenv(TimeoutEnv))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m, err := session.Connect(ctx, os.Getenv(ServersEnv), session.WithTimeout(timeout), session.WithTickTime(tick),
		session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		return err
	}
	if err := rpc.Register(&Driver{m: m, ctx: ctx, made: make(map[string]any)}); err != nil {
		return err
	}
	rpc.ServeConn(stdio{os.Stdin, os.Stdout, cancel})
	return m.Close()
}

// Do carries out a request.
func (d *Driver) Do(r Request, a *Answer) error {
	if err := d.carryOut(r, a); err != nil {
		return fmt.Errorf("%s: %w", word(err), err)
	}
	return nil
}

func (d *Driver) carryOut(r Request, a *Answer) error {
	if r.Verb == Acquire || r.Verb == Try {
		h, err := d.acquire(r.Lock, r.Verb == Try)
		return d.keep(h, err, a)
	}
	ctx, cancel := context.WithTimeout(d.ctx, patience)
	defer cancel()
	d.mu.Lock()
	var h *hold
	if r.Of > 0 {
		h = d.holds[r.Of-1]
	}
	d.mu.Unlock()
	var err error
	switch r.Verb {
	case Downgrade:
		h, err := h.downgrade()
		return d.keep(h, err, a)
	case Held:
		a.Value = strconv.FormatBool(h.held())
	case Revoked:
		select {
		case <-h.revoked:
		case <-d.ctx.Done():
		}
	case Release:
		err = h.release(ctx, nil)
	case Fail:
		err = h.release(ctx, errFailed)
	default:
		a.Value, err = d.ask(ctx, r)
	}
	return err
}

func (d *Driver) keep(h *hold, err error, a *Answer) error {
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds = append(d.holds, h)
	a.Hold, a.Node = len(d.holds), h.node
	return nil
}

// ask answers all other requests.
func (d *Driver) ask(ctx context.Context, r Request) (string, error) {
	switch r.Verb {
	case "revoke":
		return "", zklock.Revoke(ctx, d.m, r.Node)
	case "resize", "limit":
		o, err := d.object(r.Lock)
		if err != nil {
			return "", err
		}
		sem := o.(*semaphore.Semaphore)
		if r.Verb == "resize" {
			return "", sem.Resize(ctx, r.Lock.N)
		}
		n, err := sem.Limit(ctx)
		return strconv.Itoa(n), err
	case "leader":
		e, err := d.election(r.Lock)
		if err != nil {
			return "", err
		}
		c, err := e.Leader(ctx)
		return c.ID, err
	case "last":
		j, err := schedule.New(d.m, r.Lock.Path)
		if err != nil {
			return "", err
		}
		last, err := j.Last(ctx)
		return fmt.Sprintf("tick %d, tries %d, done %t", last.Tick.Unix(), last.Tries, last.Done), err
	}
	return "", fmt.Errorf("no %q", r.Verb)
}

var (
	errNotRun = errors.New("the function was not called")
	errFailed = errors.New("the function has failed")
)

// word returns a word for an error, which does not depend on the version.
func word(err error) string {
	for word, is := range map[string]error{
		"busy": queue.ErrBusy, "not run": errNotRun, "failed": errFailed, "conflict": queue.ErrConflict,
		"no leader": election.ErrNoLeader,
	} {
		if errors.Is(err, is) {
			return word
		}
	}
	return "other"
}
