package locks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Lock is a directory of contenders.
type Lock struct {
	Path       string
	Kind       Kind
	Limit      int  // leases of a semaphore; 0: not known
	LimitSet   bool // an operator has set the limit
	Contenders []Contender
	Others     []string // children that are no contenders, sorted
}

// Contender is a holder or a waiter. Texts from the node are as they are, and must be escaped before a terminal gets them.
type Contender struct {
	queue.Contender
	Mode   string // read or write
	Leases int    // of a semaphore: how many it holds or asks for
}

// Holders returns the contenders that hold the lock.
func (l *Lock) Holders() []Contender {
	return slices.DeleteFunc(slices.Clone(l.Contenders), func(c Contender) bool { return !c.Holder })
}

// Waiting returns how many contenders wait.
func (l *Lock) Waiting() int { return len(l.Contenders) - len(l.Holders()) }

// Taken returns how many leases of a semaphore the holders have.
func (l *Lock) Taken() (n int) {
	for _, c := range l.Holders() {
		n += min(c.Leases, math.MaxInt-n)
	}
	return n
}

// Node returns the name of the node.
func (c Contender) Node() string { return path.Base(c.Path) }

// ByHand reports whether no session owns the node: nobody will delete it.
func (c Contender) ByHand() bool { return c.Session == 0 }

// Revoked reports whether somebody has asked the contender to give the lock up.
func (c Contender) Revoked() bool { return string(c.Data) == queue.RevokeMessage }

// SessionText is the session as servers write it.
func (c Contender) SessionText() string { return fmt.Sprintf("%#x", uint64(c.Session)) }

// Name returns a word for a contender in messages: its ID, or else its session.
func (c Contender) Name() string {
	switch {
	case c.ID != "":
		return c.ID
	case c.ByHand():
		return "nobody"
	}
	return "session " + c.SessionText()
}

// Clients that names and data tell. Others are Curator's, or not known.
const (
	ClientOurs   = "turnstile"
	ClientLatch  = "Curator's LeaderLatch"
	ClientKazoo  = "kazoo"
	ClientZKLock = "zk.Lock of go-zookeeper"
)

var undashed = regexp.MustCompile(`^_c_[0-9a-f]{32}-`) // in names of zk.Lock

// Client returns the library that has made a node, or "".
func (c Contender) Client() string {
	n, _ := parse(c.Node())
	switch {
	case c.ByHand():
		return ""
	case strings.HasPrefix(string(c.Data), `{"id":`), strings.HasPrefix(n.Prefix, candidate):
		return ClientOurs
	case n.Prefix == queue.PrefixKazooLock, n.Prefix == queue.PrefixKazooRead:
		return ClientKazoo
	case undashed.MatchString(n.Name):
		return ClientZKLock
	case n.Prefix == queue.PrefixLatch:
		return ClientLatch
	}
	return ""
}

// Read reads the lock at a path: one request, and one for each contender; two more in Curator's layout, and one more for a
// semaphore. It fails with zk.ErrNoNode if there is no node, ctx's error, [ErrUnreachable], session.ErrClosed, or what the
// server refuses.
func (t *Tree) Read(ctx context.Context, dir string) (l *Lock, err error) {
	ctx, cancel := t.bounded(ctx, "the list of the children of "+dir)
	defer cancel()
	defer func() { err = unreachable(ctx, err) }()
	var names, prefixes []string
	var stat *zk.Stat
	err = t.do(ctx, func(s *session.Session) (err error) { names, stat, err = s.Children(ctx, dir); return err })
	if err != nil {
		return nil, err
	}
	l = &Lock{Path: dir}
	l.Kind, prefixes, l.Others = classify(names)
	// While leases in Curator's layout are held and nobody asks for more, the servers remove the empty directory of the gate. A
	// semaphore of this library at the path of the leases has its limit there.
	if l.Kind == None && slices.Contains(l.Others, curatorLeases) {
		leases, err := t.Read(ctx, path.Join(dir, curatorLeases))
		switch {
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNoAuth): // a walk comes to that directory by itself, and says so
		case err != nil:
			return nil, err
		case leases.Kind == Semaphore && leases.Limit == 0:
			l.Kind = Curator
		}
	}
	if l.Kind == Curator {
		return l, t.readCurator(ctx, l)
	}
	if err := t.readLimit(ctx, l, stat); err != nil || len(prefixes) == 0 {
		return l, err
	}
	l.Contenders, err = t.contenders(ctx, dir, rule(l.Kind, prefixes, l.Limit))
	for i := range l.Contenders {
		c := &l.Contenders[i]
		n, _ := parse(c.Node())
		switch {
		case l.Kind == Conflict:
			c.Holder = false // nobody knows
		case l.Kind == Semaphore:
			c.Leases = n.Weight
		case l.Kind == RWLock && (n.Prefix == queue.PrefixWrite || n.Prefix == queue.PrefixKazooLock):
			c.Mode = "write"
		case l.Kind == RWLock:
			c.Mode = "read"
		}
	}
	return l, err
}

// contenders reads the contenders of a directory. There are none if it has gone.
func (t *Tree) contenders(ctx context.Context, dir string, rule *queue.Kind) (out []Contender, err error) {
	q, err := queue.New(t.Manager, dir)
	if err != nil {
		return nil, err
	}
	all, err := q.Contenders(ctx, rule)
	for _, c := range all {
		out = append(out, Contender{Contender: c})
	}
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return out, err
}

// readCurator reads a semaphore in Curator's layout, whose limit is not on the servers. Contenders wait for a gate, a mutex
// in a directory of its own, and make a lease while they have it.
func (t *Tree) readCurator(ctx context.Context, l *Lock) (err error) {
	l.Contenders, err = t.contenders(ctx, path.Join(l.Path, curatorLeases), rule(Mutex, []string{queue.PrefixLease}, 0))
	if err != nil {
		return err
	}
	for i := range l.Contenders {
		n, _ := parse(l.Contenders[i].Node())
		l.Contenders[i].Holder, l.Contenders[i].Leases = true, max(n.Weight, 1)
	}
	waiters, err := t.contenders(ctx, path.Join(l.Path, curatorLocks), queue.Mutex())
	for i, c := range waiters {
		c.Holder, c.Leases = false, 1
		// The contender that has the gate may have made a lease that does not fit yet, and waits. The sessions tell which lease it
		// is: the contender is shown once.
		lease := slices.IndexFunc(l.Contenders, func(l Contender) bool { return l.Session == c.Session && !c.ByHand() && l.Token > c.Token })
		if i == 0 && lease >= 0 {
			c = l.Contenders[lease]
			c.Holder = false
			l.Contenders = slices.Delete(l.Contenders, lease, lease+1)
		}
		l.Contenders = append(l.Contenders, c)
	}
	return err
}

// readLimit reads the limit of a semaphore, which is in the data of its directory. A directory whose limit was set stays when
// nobody contends, and others stay for a moment.
func (t *Tree) readLimit(ctx context.Context, l *Lock, stat *zk.Stat) error {
	unused := l.Kind == None && (slices.Contains(l.Others, limitPin) || len(l.Others) == 0 && stat.Cversion > 0)
	if l.Kind != Semaphore && !unused || stat.DataLength == 0 {
		return nil
	}
	return t.do(ctx, func(s *session.Session) error {
		data, _, err := s.Get(ctx, l.Path)
		var said struct {
			MaxLeases int  `json:"maxLeases"`
			Default   bool `json:"default"` // the limit is the one that New was given
		}
		switch {
		case errors.Is(err, zk.ErrNoNode): // all have left
			return nil
		case err == nil && json.Unmarshal(data, &said) == nil && said.MaxLeases > 0 && said.MaxLeases <= math.MaxInt32:
			l.Kind, l.Limit, l.LimitSet = Semaphore, said.MaxLeases, !said.Default
		}
		return err
	})
}
