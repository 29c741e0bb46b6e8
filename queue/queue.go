package queue

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// Queue is a directory and the contenders in it. All Queues with one path, in all processes, are the
// same queue. The methods may be called by several goroutines at once. They panic if the Queue was not
// made by [New].
type Queue struct {
	_ misuse.NoCopy

	m     *core.Manager
	dir   string
	known atomic.Pointer[knownConfig] // the last that a survey has read; nil if none has
}

// made returns q. It panics if q is nil or a zero value.
func (q *Queue) made() *Queue {
	if q == nil || q.m == nil {
		panic("queue: Queue not made by New")
	}
	return q
}

// New returns the queue at an absolute path. It does no I/O. A nil manager or a bad path is an
// error that matches [session.ErrInvalid]. Bad paths include the root, ZooKeeper's own tree
// /zookeeper, and a path with an element that is the name of a contender: in the directory of
// another queue, such a child would be a contender that never leaves.
func New(m *session.Manager, dir string) (*Queue, error) {
	if m == nil {
		return nil, fmt.Errorf("queue: %w: nil session manager", session.ErrInvalid)
	}
	if err := core.ValidatePath(dir); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	if dir == "/" {
		return nil, fmt.Errorf("queue: %w: a lock needs a directory of its own below /", session.ErrInvalid)
	}
	if dir == system || strings.HasPrefix(dir, system+"/") {
		return nil, fmt.Errorf("queue: %w: %q is ZooKeeper's own", session.ErrInvalid, dir)
	}
	for _, element := range strings.Split(dir[1:], "/") {
		if _, ok := ParseNode(element); ok {
			return nil, fmt.Errorf("queue: %w: path %q: %q is the name of a contender", session.ErrInvalid, dir, element)
		}
	}
	return &Queue{m: (*core.Manager)(m), dir: dir}, nil
}

// system is where ZooKeeper keeps quotas and its configuration. Below a chroot the path has no
// meaning, but New refuses it there too.
const system = "/zookeeper"

// Request says what an acquisition asks for. An acquisition fails with [session.ErrInvalid] if
// its Request is not valid.
type Request struct {
	// Kind is the kind of lock. It is required.
	Kind *Kind
	// Prefix is the prefix of the contender's node, one of the kind's. Default: the first one.
	Prefix string
	// Weight is how much to ask for. It is kept in the node's name. Default: 1. The limit is
	// 2³¹ − 1, and 1 for an unfair kind.
	Weight int
	// Data is the node's data. Default: {"id":"host/pid","revocable":false} with the id of this
	// process and whether Revoked is set, with the traceparent that the trace hooks give for the
	// caller's context, and the label of WithLabel of package zklock. The node of a [Local] has
	// neither of the last two, since several acquisitions share it. Data must not be [RevokeMessage].
	Data []byte
	// Revoked, if not nil, is called when the data of the holder's node becomes [RevokeMessage],
	// which asks the holder to release its lease. If that happens while the contender waits,
	// Revoked is called when it holds. It is called once at most, in a goroutine of its own.
	// Nothing else happens: the holder decides whether it releases.
	Revoked func(*Lease)

	handedOn bool // a Local's node: it outlives the acquisition that creates it
}

// complete sets the defaults, and returns an error if the request is not valid.
func (r *Request) complete() error {
	if err := r.Kind.Check(); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	if r.Prefix == "" {
		r.Prefix = r.Kind.Prefixes[0]
	}
	if r.Weight == 0 {
		r.Weight = 1
	}
	if r.Weight < 0 {
		return fmt.Errorf("queue: %w: weight %d is negative", session.ErrInvalid, r.Weight)
	}
	if r.Weight > math.MaxInt32 {
		return fmt.Errorf("queue: %w: weight %d is above the limit of %d", session.ErrInvalid, r.Weight, math.MaxInt32)
	}
	if string(r.Data) == RevokeMessage {
		return fmt.Errorf("queue: %w: node data %q asks the holder to release its lease", session.ErrInvalid, RevokeMessage)
	}
	if r.Kind.Unfair && r.Weight > 1 {
		return fmt.Errorf("queue: %w: weight %d for an unfair lock", session.ErrInvalid, r.Weight)
	}
	if !slices.Contains(r.Kind.Prefixes, r.Prefix) {
		return fmt.Errorf("queue: %w: prefix %q is not one of the kind's", session.ErrInvalid, r.Prefix)
	}
	return nil
}

// Manager returns the session manager that was given to [New].
func (q *Queue) Manager() *session.Manager { return (*session.Manager)(q.made().m) }

// hooks returns the hooks of the manager.
func (q *Queue) hooks() *session.Trace { return q.m.Hooks() }

// newPace returns the pace of a loop that goes by the manager's backoff.
func (q *Queue) newPace() *rounds.Pace { return &rounds.Pace{New: q.m.Retry()} }

// Path returns the queue's directory.
func (q *Queue) Path() string { return q.made().dir }

// FullName returns the directory's name with servers and chroot, as [session.Manager.FullName]
// gives it.
func (q *Queue) FullName() string { return q.made().m.FullName(q.dir) }
