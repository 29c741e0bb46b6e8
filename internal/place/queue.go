package place

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/kinds"
)

// Queue is a directory and the contenders in it. All Queues with one path, in all processes, are the same
// queue. The methods may be called by several goroutines at once.
type Queue struct {
	_ misuse.NoCopy

	m     *core.Manager
	dir   string
	known atomic.Pointer[knownConfig] // the last that a survey has read; nil if none has
}

// Made returns q. It panics if q is nil or a zero value.
func (q *Queue) Made() *Queue {
	if q == nil || q.m == nil {
		panic("queue: Queue not made by New")
	}
	return q
}

// New returns the queue at an absolute path. It does no I/O. Its errors match ErrInvalid.
func New(m *core.Manager, dir string) (*Queue, error) {
	if m == nil {
		return nil, fmt.Errorf("%w: nil session manager", core.ErrInvalid)
	}
	if err := misuse.ValidatePath(dir); err != nil {
		return nil, err
	}
	if dir == "/" {
		return nil, fmt.Errorf("%w: a lock needs a directory of its own below /", core.ErrInvalid)
	}
	if dir == system || strings.HasPrefix(dir, system+"/") {
		return nil, fmt.Errorf("%w: %q is ZooKeeper's own", core.ErrInvalid, dir)
	}
	for _, element := range strings.Split(dir[1:], "/") {
		if _, ok := kinds.ParseNode(element); ok {
			return nil, fmt.Errorf("%w: path %q: %q is the name of a contender", core.ErrInvalid, dir, element)
		}
	}
	return &Queue{m: m, dir: dir}, nil
}

// system is where ZooKeeper keeps quotas and its configuration. Below a chroot the path has no
// meaning, but New refuses it there too.
const system = "/zookeeper"

// Request says what an acquisition asks for: see the Request of package queue.
type Request struct {
	Kind   *kinds.Kind
	Prefix string // "": the first of the kind's
	Weight int    // 0: 1
	Data   []byte // nil: the default
	Name   string // for hooks; "": none

	handedOn bool // the node outlives the acquisition that creates it
}

// Check returns an error if the request is not valid.
func (r Request) Check() error { return r.complete() }

// complete sets the defaults, and returns an error if the request is not valid.
func (r *Request) complete() error {
	if err := r.Kind.Check(); err != nil {
		return err
	}
	if r.Prefix == "" {
		r.Prefix = r.Kind.Prefixes[0]
	}
	if r.Weight == 0 {
		r.Weight = 1
	}
	if r.Weight < 0 {
		return fmt.Errorf("%w: weight %d is negative", core.ErrInvalid, r.Weight)
	}
	if r.Weight > math.MaxInt32 {
		return fmt.Errorf("%w: weight %d is above the limit of %d", core.ErrInvalid, r.Weight, math.MaxInt32)
	}
	if string(r.Data) == kinds.RevokeMessage {
		return fmt.Errorf("%w: node data %q asks the holder to release its lease", core.ErrInvalid, kinds.RevokeMessage)
	}
	if r.Name != "" {
		if err := CheckName(r.Name); err != nil {
			return err
		}
	}
	if !slices.Contains(r.Kind.Prefixes, r.Prefix) {
		return fmt.Errorf("%w: prefix %q is not one of the kind's", core.ErrInvalid, r.Prefix)
	}
	return nil
}

// HandOn is complete, for a request whose node outlives the acquisition that creates it.
func (r *Request) HandOn() error {
	r.handedOn = true
	return r.complete()
}

// Manager returns the session manager that was given to New.
func (q *Queue) Manager() *core.Manager { return q.m }

// hooks returns the hooks of the manager.
func (q *Queue) hooks() *hooks.Trace { return q.m.Hooks() }

// newPace returns the pace of a loop that goes by the manager's backoff.
func (q *Queue) newPace() *rounds.Pace { return &rounds.Pace{New: q.m.Retry()} }

// Path returns the queue's directory.
func (q *Queue) Path() string { return q.dir }

// FullName returns the directory's name with servers and chroot.
func (q *Queue) FullName() string { return q.m.FullName(q.dir) }

// knownConfig is a configuration that a session has read. It was in force at the moment of a listing if the
// listing's stat names the same transaction, since nobody sees a directory in the middle of a transaction.
type knownConfig struct {
	kinds.Config
	in int64 // the session's id, since the session itself must not stay in memory
}
