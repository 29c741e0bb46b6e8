// Package driver is a process that uses the locks of one version of this module as its standard input says, and tells
// on its standard output what comes of it. It uses only what both versions have.
package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Environment variables of the process.
const (
	ServersEnv = "TURNSTILE_VERSIONS_SERVERS"
	TimeoutEnv = "TURNSTILE_VERSIONS_TIMEOUT" // of its sessions
)

// A Request is a line of the input, as JSON.
type Request struct {
	ID   int    `json:"id"`
	Verb string `json:"verb"`
	Of   int    `json:"of,omitempty"`   // the request that got the hold that is meant
	Lock Lock   `json:"lock,omitzero"`  // what to acquire, or to ask about
	Node string `json:"node,omitempty"` // of the contender to revoke
	Fail bool   `json:"fail,omitempty"` // the function of a job returns an error
}

// The verbs. The others are those of ask.
const (
	Acquire   = "acquire"   // answered when it holds
	Try       = "try"       // the same, and does not wait
	Downgrade = "downgrade" // the write lock of a request is also a read lock, which is a hold of this request
	Held      = "held"      // answered with "true" or "false"
	Release   = "release"   // answered when the release has returned
)

// A Lock says what to acquire and how.
type Lock struct {
	Kind   string   `json:"kind"`
	Path   string   `json:"path"`
	Others []string `json:"others,omitempty"` // the other paths of several locks together
	Key    string   `json:"key,omitempty"`    // of a lock for each key, or the ID of a candidate
	Leases int      `json:"leases,omitempty"` // the limit of a semaphore
	N      int      `json:"n,omitempty"`      // how many leases, if not one
	Owned  bool     `json:"owned,omitempty"`  // a write lock by an owner, who can downgrade
	Tick   int64    `json:"tick,omitempty"`   // of a job
}

// An Answer is a line of the output, as JSON.
type Answer struct {
	ID     int    `json:"id"`               // of the request; 0 if nobody has asked
	Node   string `json:"node,omitempty"`   // of the hold; or, with no ID, the node that was asked to leave
	Value  string `json:"value,omitempty"`  // of what was asked
	Reason string `json:"reason,omitempty"` // a word for the error
	Error  string `json:"error,omitempty"`
}

// hold is what an acquisition got.
type hold struct {
	node      string
	held      func() bool                          // false is for good
	release   func(ctx context.Context) error      // called once
	fail      func(ctx context.Context) error      // of a job; called in place of release
	downgrade func(context.Context) (*hold, error) // of a write lock that has an owner
}

const (
	patience  = 20 * time.Second       // bounds a release, and what is asked
	tick      = 200 * time.Millisecond // of the servers of the tests
	kept      = time.Minute            // how long a place is kept: longer than any test
	handovers = 2
)

// server is a process at work.
type server struct {
	m    *session.Manager
	ctx  context.Context
	work sync.WaitGroup

	mu    sync.Mutex // guards what follows
	out   *json.Encoder
	holds map[int]*hold      // by request
	made  map[string]*object // by what they are
}

// Main is the whole process. It carries out requests until there are no more.
func Main() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &server{ctx: ctx, out: json.NewEncoder(os.Stdout), holds: make(map[int]*hold), made: make(map[string]*object)}
	if err := s.connect(); err != nil {
		return err
	}
	s.tell(Answer{Value: "ready"})
	var err error
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r Request
		if err = json.Unmarshal(lines.Bytes(), &r); err != nil {
			break
		}
		s.work.Go(func() {
			a, err := s.carryOut(r)
			if err != nil {
				a.Reason, a.Error = reason(err), err.Error()
			}
			a.ID = r.ID
			s.tell(a)
		})
	}
	cancel()
	s.mu.Lock()
	holds := s.holds
	s.holds = make(map[int]*hold)
	s.mu.Unlock()
	for _, h := range holds {
		_ = h.release(ctx) // nobody may wait for ever in the function of a Do
	}
	s.work.Wait()
	return errors.Join(err, s.m.Close())
}

func (s *server) connect() error {
	timeout, err := time.ParseDuration(os.Getenv(TimeoutEnv))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	s.m, err = session.Connect(ctx, os.Getenv(ServersEnv), session.WithTimeout(timeout), session.WithTickTime(tick),
		session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		session.WithTrace(session.Trace{Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
			if lease, ok := queue.LeaseFrom(ctx); ok {
				go func() {
					select {
					case <-lease.Revoked():
						s.tell(Answer{Node: lease.Path()})
					case <-lease.Done():
					}
				}()
			}
			return nil
		}}))
	return err
}

func (s *server) tell(a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(a) // who reads it may be gone
}

func (s *server) carryOut(r Request) (Answer, error) {
	switch r.Verb {
	case Acquire, Try:
		h, err := s.acquire(s.ctx, r.Lock, r.Verb == Try)
		return s.keep(r.ID, h, err)
	case Downgrade:
		h, err := s.hold(r.Of)
		if err == nil {
			h, err = h.downgrade(s.ctx)
		}
		return s.keep(r.ID, h, err)
	case Held:
		h, err := s.hold(r.Of)
		if err != nil {
			return Answer{}, err
		}
		return Answer{Value: fmt.Sprint(h.held())}, nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	if r.Verb != Release {
		value, err := s.ask(ctx, r)
		return Answer{Value: value}, err
	}
	h, err := s.hold(r.Of)
	if err != nil {
		return Answer{}, err
	}
	s.mu.Lock()
	delete(s.holds, r.Of)
	s.mu.Unlock()
	if r.Fail {
		return Answer{}, h.fail(ctx)
	}
	return Answer{}, h.release(ctx)
}

func (s *server) keep(id int, h *hold, err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[id] = h
	return Answer{Node: h.node}, nil
}

func (s *server) hold(id int) (*hold, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.holds[id]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("request %d has no hold", id)
}
