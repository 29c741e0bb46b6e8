// Package driver is a process that uses the locks of one version of this module as its standard input says, and tells
// on its standard output what comes of it. This file is the protocol, and uses nothing of the module. The other one uses
// only what both versions have.
package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
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
	Of   int    `json:"of,omitempty"`   // the request that is meant, or that got the hold that is meant
	Lock Lock   `json:"lock,omitzero"`  // what to acquire, or to ask about
	Node string `json:"node,omitempty"` // of the contender to revoke
	Fail bool   `json:"fail,omitempty"` // the function of a job returns an error
}

// The verbs. All others are passed to [State.Ask].
const (
	Acquire   = "acquire"   // answered when it holds
	Try       = "try"       // the same, and does not wait
	Downgrade = "downgrade" // the write lock of a request is also a read lock, which is a hold of this request
	Cancel    = "cancel"    // ends the wait of a request
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
	Owned  bool     `json:"owned,omitempty"`  // by an owner, by Lock: so a writer can downgrade
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

// A Hold is what an acquisition got.
type Hold struct {
	Node      string
	Held      func() bool                          // false is for good
	Release   func(ctx context.Context) error      // called once
	Fail      func(ctx context.Context) error      // of a job; called in place of Release
	Downgrade func(context.Context) (*Hold, error) // of a write lock that has an owner
}

// A State is a version of this module.
type State interface {
	Acquire(ctx context.Context, k Lock, try bool) (*Hold, error)
	Ask(ctx context.Context, r Request) (string, error)
	Reason(err error) string
	Close() error
}

// patience bounds a release, and what is asked.
const patience = 20 * time.Second

// server is a process at work.
type server struct {
	state State
	ctx   context.Context
	work  sync.WaitGroup

	mu      sync.Mutex
	out     *json.Encoder
	cancels map[int]context.CancelFunc // by request, until it has its hold
	holds   map[int]*Hold              // by request
}

// Serve carries out requests until there are no more. open is called with a function that tells that somebody has
// asked a holder to give a node up.
func Serve(in io.Reader, out io.Writer, open func(asked func(node string)) (State, error)) error {
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{ctx: ctx, out: json.NewEncoder(out), cancels: make(map[int]context.CancelFunc), holds: make(map[int]*Hold)}
	var err error
	if s.state, err = open(func(node string) { s.tell(Answer{Node: node}) }); err != nil {
		cancel()
		return err
	}
	s.tell(Answer{Value: "ready"})
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var r Request
		if err = json.Unmarshal(lines.Bytes(), &r); err != nil {
			break
		}
		s.begin(r)
	}
	cancel()
	for _, h := range s.left() {
		_ = h.Release(ctx) // nobody may wait for ever in the function of a Do
	}
	s.work.Wait()
	return errors.Join(err, s.state.Close())
}

func (s *server) left() []*Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Hold
	for id, h := range s.holds {
		all = append(all, h)
		delete(s.holds, id)
	}
	return all
}

func (s *server) tell(a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(a) // who reads it may be gone
}

// begin carries out a request in the background.
func (s *server) begin(r Request) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	s.cancels[r.ID] = cancel
	s.mu.Unlock()
	s.work.Go(func() {
		a, err := s.carryOut(ctx, r)
		if err != nil {
			a.Reason, a.Error = s.state.Reason(err), err.Error()
		}
		a.ID = r.ID
		s.tell(a)
	})
}

func (s *server) carryOut(ctx context.Context, r Request) (Answer, error) {
	switch r.Verb {
	case Acquire, Try:
		h, err := s.state.Acquire(ctx, r.Lock, r.Verb == Try)
		return s.keep(r.ID, h, err)
	case Downgrade:
		h, err := s.hold(r.Of)
		if err == nil {
			h, err = h.Downgrade(ctx)
		}
		return s.keep(r.ID, h, err)
	case Cancel:
		s.mu.Lock()
		defer s.mu.Unlock()
		if cancel := s.cancels[r.Of]; cancel != nil {
			cancel()
		}
		return Answer{}, nil
	case Held:
		h, err := s.hold(r.Of)
		if err != nil {
			return Answer{}, err
		}
		return Answer{Value: fmt.Sprint(h.Held())}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r.Verb != Release {
		value, err := s.state.Ask(ctx, r)
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
		return Answer{}, h.Fail(ctx)
	}
	return Answer{}, h.Release(ctx)
}

func (s *server) keep(id int, h *Hold, err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[id] = h
	return Answer{Node: h.Node}, nil
}

func (s *server) hold(id int) (*Hold, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.holds[id]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("request %d has no hold", id)
}
