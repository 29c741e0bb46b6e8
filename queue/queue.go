package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/session"
	"golang.org/x/sync/errgroup"
)

// Queue is a directory and the contenders under it. It holds no state of its own: any
// number of queues, in any number of processes, at one path are one queue. Its methods
// may be called by any number of goroutines at once. They panic if [New] has not made the Queue.
type Queue struct {
	_ misuse.NoCopy

	m   *session.Manager
	dir string
}

// made returns q. It panics if q is nil or a zero value.
func (q *Queue) made() *Queue {
	if q == nil || q.m == nil {
		panic("queue: Queue not made by New")
	}
	return q
}

// New returns the queue at an absolute path. It does no I/O; a nil manager or a bad
// path is an error that matches [session.ErrInvalid]. Beside what is no path, that is the
// root, ZooKeeper's own tree /zookeeper, and a path with an element that is the name of a
// contender: in another queue's directory it would stand in line for ever.
func New(m *session.Manager, dir string) (*Queue, error) {
	if m == nil {
		return nil, fmt.Errorf("queue: %w: nil session manager", session.ErrInvalid)
	}
	if err := plumbing.ValidatePath(dir); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	if dir == "/" {
		return nil, fmt.Errorf("queue: %w: a lock needs a directory of its own, below /", session.ErrInvalid)
	}
	if dir == system || strings.HasPrefix(dir, system+"/") {
		return nil, fmt.Errorf("queue: %w: %q is ZooKeeper's own", session.ErrInvalid, dir)
	}
	for _, element := range strings.Split(dir[1:], "/") {
		if _, ok := ParseNode(element); ok {
			return nil, fmt.Errorf("queue: %w: path %q: %q is a name for contenders", session.ErrInvalid, dir, element)
		}
	}
	return &Queue{m: m, dir: dir}, nil
}

// system is where ZooKeeper keeps quotas and its configuration. Below a chroot it is nothing
// special, and no name to lock by either.
const system = "/zookeeper"

// Request says what to ask for. The zero value has no kind, so an acquisition with it fails
// with [session.ErrInvalid].
type Request struct {
	// Kind is the lock's kind. Required.
	Kind *Kind
	// Prefix is that of the contender's node, one of the kind's. Default: the first.
	Prefix string
	// Weight is how much to ask for, kept in the node's name: 2³¹ − 1 at most. Default: 1;
	// of an unfair kind nothing else.
	Weight int
	// Data is the node's data. Default: who waits, as {"id":"host/pid"}, with the
	// traceparent that the trace hooks give for the caller's context; the node of a [Local],
	// which several acquisitions share, has none. It must not be [RevokeMessage].
	Data []byte
	// Revoked, if not nil, is called when somebody asks the holder to give the lease up
	// ([RevokeMessage]): once at most, from a goroutine of its own, also when the request
	// came while the contender was still waiting. Nothing else happens: it is for the
	// holder to release the lease, or not.
	Revoked func(*Lease)

	handedOn bool // the node: it outlives the acquisition that makes it
}

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
		return fmt.Errorf("queue: %w: weight %d: the limit is %d", session.ErrInvalid, r.Weight, math.MaxInt32)
	}
	if string(r.Data) == RevokeMessage {
		return fmt.Errorf("queue: %w: node data %q asks its holder to leave", session.ErrInvalid, RevokeMessage)
	}
	if r.Kind.Unfair && r.Weight > 1 {
		return fmt.Errorf("queue: %w: weight %d of an unfair lock", session.ErrInvalid, r.Weight)
	}
	if !slices.Contains(r.Kind.Prefixes, r.Prefix) {
		return fmt.Errorf("queue: %w: prefix %q is not one of the kind's", session.ErrInvalid, r.Prefix)
	}
	return nil
}

// Path returns the queue's directory.
func (q *Queue) Path() string { return q.made().dir }

// FullName returns the directory's name as seen from outside, with servers and chroot: see
// [session.Manager.FullName].
func (q *Queue) FullName() string { return q.made().m.FullName(q.dir) }

// Contender is one who holds or waits.
type Contender struct {
	Path     string // of its node
	Sequence int32  // its place: lower is earlier
	Data     []byte // of its node
	Holder   bool   // whether it may go, as far as this listing tells: now, under a limit that was lowered
}

// Contenders returns those of a kind who hold or wait, in order: a picture of one
// moment that has passed. It returns an empty list where nobody does, and fails with
// ctx's error, [ErrConflict], [session.ErrClosed], [session.ErrInvalid] for a bad kind, or
// what the server refused.
func (q *Queue) Contenders(ctx context.Context, kind *Kind) ([]Contender, error) {
	q.made()
	misuse.Context(ctx, "queue: Queue.Contenders")
	if err := kind.Check(); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	for {
		s, err := q.m.Session(ctx)
		if err != nil {
			return nil, fmt.Errorf("contenders of %s: %w", q.dir, err)
		}
		out, err := q.contendersIn(ctx, s, kind)
		if errors.Is(err, session.ErrLost) {
			continue // the next session can tell
		}
		if err != nil {
			return nil, fmt.Errorf("contenders of %s: %w", q.dir, err)
		}
		return out, nil
	}
}

func (q *Queue) contendersIn(ctx context.Context, s *session.Session, kind *Kind) ([]Contender, error) {
	names, _, err := s.Children(ctx, q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return []Contender{}, nil
	}
	if err != nil {
		return nil, err
	}
	nodes, err := ofKind(parseNodes(names, kind.Prefixes...), kind)
	if err != nil || len(nodes) == 0 {
		return []Contender{}, err
	}
	var config Config
	if kind.Configured != nil {
		config, err = readConfig(ctx, s, q.dir)
		if errors.Is(err, zk.ErrNoNode) { // all have left meanwhile
			return []Contender{}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	out := make([]Contender, len(nodes))
	for i, n := range nodes {
		p, err := kind.policyOf(n, config)
		if err != nil {
			return nil, err
		}
		out[i] = Contender{
			Path:     path.Join(q.dir, n.Name),
			Sequence: n.Sequence,
			Holder:   mayGo(blockers(n, nodes, p), p.Slack),
		}
	}
	return readData(ctx, s, out)
}

// readData adds the data of their nodes to contenders, and leaves out those that are gone.
func readData(ctx context.Context, s *session.Session, all []Contender) ([]Contender, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i := range all {
		g.Go(func() error {
			data, _, err := s.Get(ctx, all[i].Path)
			if errors.Is(err, zk.ErrNoNode) {
				all[i].Path = "" // it left meanwhile
				return nil
			}
			all[i].Data = data
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(c Contender) bool { return c.Path == "" }), nil
}

// ofKind returns the nodes that take part in a lock of this kind. One of another kind
// is a conflict.
func ofKind(nodes []Node, kind *Kind) ([]Node, error) {
	for _, n := range nodes {
		if !slices.Contains(kind.Prefixes, n.Prefix) {
			return nil, fmt.Errorf("%w: a %s lock finds %s", ErrConflict, kind.Name, n.Name)
		}
	}
	return nodes, nil
}

// identity says who we are, in the data of our nodes.
var identity = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
})

// nodeData is what a node says of its maker, by default.
func nodeData(traceparent string) []byte {
	data := struct {
		ID          string `json:"id"`
		Traceparent string `json:"traceparent,omitempty"`
	}{ID: identity(), Traceparent: traceparent}
	b, err := json.Marshal(data)
	if err != nil {
		return nil // two strings cannot fail to be JSON
	}
	return b
}
