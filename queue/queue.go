package queue

import (
	"context"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/session"
)

// Queue is a directory and the contenders in it. All Queues with one path, in all processes, are the same queue. The
// methods may be called by several goroutines at once. They panic if the Queue was not made by [New].
type Queue struct {
	_ misuse.NoCopy

	m      *session.Manager
	dir    string
	warned sync.Map // nodes of which the log has a warning, by path: the transactions that have created them
}

// New returns the queue at an absolute path. It does no I/O. A nil manager or a bad path is an error that matches
// [session.ErrInvalid]. Bad paths include the root, ZooKeeper's own tree /zookeeper, and a path with an element that is
// the name of a contender: for another queue, it would be a contender that never leaves.
func New(m *session.Manager, dir string) (*Queue, error) {
	err := checkDir(dir)
	if m == nil {
		err = misuse.Invalidf("nil session manager")
	}
	if err != nil {
		return nil, errQueue(err)
	}
	return &Queue{m: m, dir: dir}, nil
}

func checkDir(dir string) error {
	if err := misuse.ValidatePath(dir); err != nil {
		return err
	}
	switch {
	case dir == "/":
		return misuse.Invalidf("a lock needs a directory of its own below /")
	case strings.HasPrefix(dir+"/", "/zookeeper/"):
		return misuse.Invalidf("%q is ZooKeeper's own", dir)
	}
	for _, element := range strings.Split(dir[1:], "/") {
		if _, ok := ParseNode(element); ok {
			return misuse.Invalidf("path %q: %q is the name of a contender", dir, element)
		}
	}
	return nil
}

func (q *Queue) made() *Queue {
	if q == nil || q.m == nil {
		panic("queue: Queue not made by New")
	}
	return q
}

// Manager returns the session manager that was given to [New].
func (q *Queue) Manager() *session.Manager { return q.made().m }

// Path returns the queue's directory.
func (q *Queue) Path() string { return q.made().dir }

// Identity returns host/pid of this process: the ID in the data of its nodes, unless that is set otherwise.
func Identity() string { return nodedata.Identity() }

func (q *Queue) nodePath(name string) string { return path.Join(q.dir, name) }

// inSession calls f with the live session, until it returns an error that another session does not mend.
func (q *Queue) inSession(
	ctx context.Context, pace *rounds.Pace, f func(ctx context.Context, s *session.Session) error,
) error {
	ctx, end := BeginWait(ctx)
	for {
		s, err := q.m.Session(ctx)
		if err == nil {
			if err = f(ctx, s); isLoss(err) {
				if err = pace.Wait(ctx, s.Done()); err == nil {
					continue
				}
			}
		}
		return end(err)
	}
}

// Request says what an acquisition asks for. If it is not valid, the acquisition fails with [session.ErrInvalid].
type Request struct {
	// Kind is the kind of lock. It is required.
	Kind *Kind
	// Prefix is the prefix of the contender's node, one of the kind's. Default: the first one.
	Prefix string
	// Weight is how much to ask for. It is kept in the node's name. Default: 1. The limit is 2³¹ − 1.
	Weight int
	// Data is the node's data, and not [RevokeMessage]. Default: {"id":"host/pid"} of this process, with the
	// traceparent that the trace hooks give for the caller's context, and the label of [WithLabel].
	Data []byte
	// Name is a name for metrics and spans, as in [CheckName]. Default: none.
	Name string

	// The rest is for makers of locks.

	// Shared says that several acquisitions use the node. Its default data has neither label nor traceparent, which
	// would be those of the first one alone.
	Shared bool
	// Shown tells others what the acquisition waits for. It may be nil.
	Shown *Waiting
	// MayKeep says that the place may be kept while nobody holds the lock: see [Turn.Undisturbed].
	MayKeep bool
}

// Check returns an error that matches [session.ErrInvalid] if acquisitions would refuse the request. It does no I/O.
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
	switch {
	case r.Weight < 0:
		return misuse.Invalidf("weight %d is negative", r.Weight)
	case r.Weight > math.MaxInt32:
		return misuse.Invalidf("weight %d is above the limit of %d", r.Weight, math.MaxInt32)
	case string(r.Data) == RevokeMessage:
		return misuse.Invalidf("node data %q asks the holder to release its lease", RevokeMessage)
	case !slices.Contains(r.Kind.Prefixes, r.Prefix):
		return misuse.Invalidf("prefix %q is not one of the kind's", r.Prefix)
	case r.MayKeep && r.Kind.Configuration != nil:
		return misuse.Invalidf("%s lock keeps no places", called(r.Kind))
	case r.Name == "":
		return nil
	}
	return CheckName(r.Name)
}

const longestName = 200 // of a lock, in bytes

// CheckName returns an error that matches [session.ErrInvalid] if text is not a name for metrics and spans: text that
// can be printed, of at most 200 bytes.
func CheckName(text string) error {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case text == "":
		return misuse.Invalidf("empty name")
	case len(text) > longestName:
		return misuse.Invalidf("a name of %d bytes: the limit is %d", len(text), longestName)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable):
		return misuse.Invalidf("name %q cannot be printed", text)
	}
	return nil
}

func (q *Queue) nodeData(ctx context.Context, r *Request) []byte {
	d, label := nodedata.New(), labelOf(ctx) // the simulation goes by that look at the context
	if !r.Shared {
		d.Label = label
		if hook := q.m.Trace().Traceparent; hook != nil {
			d.Traceparent = hook(ctx)
		}
	}
	return d.Encode()
}

// valuesFor returns a context that never ends, with the values of ctx for hooks. Without hooks that could look at them,
// it has none, so that they can be freed.
func (q *Queue) valuesFor(ctx context.Context) context.Context {
	t := q.m.Trace()
	if t.Hold == nil && t.Loss == nil && t.Release == nil && t.Request == nil && t.Retry == nil {
		return context.Background()
	}
	return context.WithoutCancel(ctx)
}
