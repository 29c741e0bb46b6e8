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

// Queue is a directory and the contenders in it. All Queues with one path are the same queue, in all processes.
type Queue struct {
	_ misuse.NoCopy

	m      *session.Manager
	dir    string
	warned sync.Map // czxids of nodes that the log has warned of, by path
}

// New returns the queue at an absolute path. It does no I/O. It fails with [session.ErrInvalid] for a nil manager and
// a bad path: also for the root, /zookeeper, and an element that is a contender's name.
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

// Manager returns the manager that was given to [New].
func (q *Queue) Manager() *session.Manager { return q.made().m }

// Path returns the queue's directory.
func (q *Queue) Path() string { return q.made().dir }

// Identity returns host/pid of this process, the default ID of its contenders.
func Identity() string { return nodedata.Identity() }

func (q *Queue) nodePath(name string) string { return path.Join(q.dir, name) }

// inSession calls f with the live session, again after each loss.
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

// Request says what an acquisition asks for.
type Request struct {
	// Kind is required.
	Kind *Kind
	// Prefix is one of the kind's. Default: the first one.
	Prefix string
	// Weight is how much to ask for: 1 to 2³¹ − 1. Default: 1.
	Weight int
	// Data is the node's data, and not [RevokeMessage]. Default: {"id":"host/pid"}, with a traceparent that the trace
	// hook gives, and the label of [WithLabel].
	Data []byte
	// Name is a name for metrics and spans: see [CheckName]. Default: none.
	Name string

	// The rest is for makers of locks.

	// Shared says that several acquisitions use the node. Then its default data has no label and traceparent.
	Shared bool
	// Shown tells others what the acquisition waits for: see [Queue.Why].
	Shown *Waiting
	// MayKeep says that the place may be kept unused: see [Turn.Undisturbed].
	MayKeep bool
}

// Check returns an error that matches [session.ErrInvalid] if acquisitions would refuse the request.
func (r Request) Check() error { return r.complete() }

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

const longestName = 200 // in bytes

// CheckName fails with [session.ErrInvalid] unless text can be a name for metrics and spans: it can be printed, and
// has 1 to 200 bytes.
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
	d, label := nodedata.New(), labelOf(ctx) // also if Shared: the simulation learns by this look at ctx which call makes a node
	if !r.Shared {
		d.Label = label
		if hook := q.m.Trace().Traceparent; hook != nil {
			d.Traceparent = hook(ctx)
		}
	}
	return d.Encode()
}

// valuesFor returns a context for hooks that never ends. Values that no hook could look at can be freed: these are the
// hooks that get a context which was stored.
func (q *Queue) valuesFor(ctx context.Context) context.Context {
	t := q.m.Trace()
	if t.Hold == nil && t.Loss == nil && t.Release == nil && t.Request == nil && t.Retry == nil {
		return context.Background()
	}
	return context.WithoutCancel(ctx)
}
