package session

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// Removal is a delete that is guaranteed: see [Session.Remove]. Its methods panic if no [Session] has made it.
type Removal struct {
	_ misuse.NoCopy

	ctx   context.Context // for hooks
	path  string
	place *place
	// find, if not nil, finds out what there is to delete, and deletes it.
	find func(context.Context) error
	cut  <-chan struct{}
	done chan struct{}
	err  error

	// Guarded by the mutex of removals.
	told  bool // done is closed
	waits rounds.Backoff
	timer *time.Timer
}

var closedNow = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

func (r *Removal) check() *Removal {
	if r == nil || r.done == nil {
		panic("session: Removal not made by Session.Remove")
	}
	return r
}

// Done returns a channel that is closed when the node is gone, the servers have refused, or the session has ended.
func (r *Removal) Done() <-chan struct{} { return r.check().done }

// Cut returns a channel that is closed when the connection ends that was there when the removal began, or at once
// without one. A caller that waits for Done, but not for an outage, waits for Cut too.
func (r *Removal) Cut() <-chan struct{} { return r.check().cut }

// Err returns nil before Done is closed, and if the node is gone. Otherwise it returns the servers' refusal, such as
// zk.ErrNoAuth, or matches [ErrLost] or [ErrClosed].
func (r *Removal) Err() error {
	select {
	case <-r.check().done:
		return r.err
	default:
		return nil
	}
}

// Remove deletes the node at path for certain. It returns at once: the session repeats the delete, across reconnects,
// until the servers say that the node is gone, or the session ends. If there is a connection, what the caller sends
// next comes after the delete. If the servers refuse (zk.ErrNoAuth, zk.ErrNotEmpty), the [Removal] reports that, and
// the session goes on trying slowly: at least each 30 s, or 20 ms for each refused node if that is more.
//
// A delete that is repeated deletes whatever stands at the path by then. So Remove is for names that only one node
// ever has, such as numbered ones. For a fixed name there is [Node.Remove]. ctx is for hooks only, and may have
// ended. If path is not valid, the Removal fails with [ErrInvalid].
func (s *Session) Remove(ctx context.Context, path string) *Removal {
	misuse.Context(ctx, "session: Session.Remove")
	s.check()
	if err := misuse.ValidatePath(path); err != nil {
		return &Removal{path: path, done: closedNow, cut: closedNow, err: err}
	}
	r, start := s.removals.begin(ctx, path, s.room.at(path), nil)
	start()
	return r
}

// Removing reports whether this session is removing the node at path, also if the servers have refused that.
func (s *Session) Removing(path string) bool { return s.check().removals.at(path) != nil }

// removals are the deletes of a session that are under way. A broken connection can leave thousands, so they share
// goroutines.
type removals struct {
	s        *Session
	searches lane

	mu   sync.Mutex
	all  map[string][]*Removal // by path
	owed []*Removal            // for the next connection
	over bool

	refused int // how many of all
}

// begin returns a removal. start sends the delete, now or over the next connection. It calls a hook, so its caller
// must hold no mutex. With find and no place, nothing is known to be there: find looks first.
func (q *removals) begin(ctx context.Context, path string, place *place, find func(context.Context) error) (r *Removal, start func()) {
	r = &Removal{ctx: context.WithoutCancel(ctx), path: path, place: place, find: find, cut: closedNow, waits: q.s.cfg.waits}
	r.done = make(chan struct{})
	l, unknown := q.s.link(), find != nil && place == nil // not deleted before it is found
	if l != nil && !unknown {
		r.cut = l.cut
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = make(map[string][]*Removal)
		context.AfterFunc(q.s.life, q.end)
	}
	q.all[path] = append(q.all[path], r)
	over := q.over
	return r, func() {
		switch {
		case over:
			q.finish(r, q.s.Err())
		case unknown:
			q.search(r)
		case l == nil:
			q.owe(r)
		default:
			q.send(l, r)
		}
	}
}

func (q *removals) at(path string) *Removal {
	q.mu.Lock()
	defer q.mu.Unlock()
	if all := q.all[path]; len(all) > 0 {
		return all[0]
	}
	return nil
}

// owe has the next connection send a delete, or sends it over the present one, which has had those that were owed.
func (q *removals) owe(r *Removal) {
	q.mu.Lock()
	l := q.s.link()
	if l == nil {
		q.owed = append(q.owed, r)
	}
	q.mu.Unlock()
	if l != nil {
		q.send(l, r)
	}
}

func (q *removals) resume(l *link) {
	q.mu.Lock()
	owed := q.owed
	q.owed = nil
	q.mu.Unlock()
	for _, r := range owed {
		q.send(l, r)
	}
}

func (q *removals) send(l *link, r *Removal) {
	s := q.s
	ended := s.traceRequest(r.ctx, "delete", r.path)
	failed := false
	one := s.cfg.deleting(r.path, anyVersion)
	one.First, one.Done = true, func(reply wire.Reply) {
		err := s.verdict(&reply)
		gone := reply.Err == nil && (reply.Code == codec.CodeOK || reply.Code == codec.CodeNoNode)
		if gone {
			s.room.end(r.place)
		} else {
			s.room.stay(r.place, &failed, reply.Err == nil)
		}
		ended(err)
		switch {
		case gone:
			q.finish(r, nil)
		case reply.Err == nil || s.Err() != nil:
			q.failed(r, err)
		case r.find != nil:
			q.search(r)
		default:
			s.traceRetry(r.ctx, "delete", 1, err)
			q.owe(r)
		}
	}
	l.conn.Start(&one.Call)
	s.room.leave(r.place, &failed)
}

func (q *removals) search(r *Removal) {
	q.searches.add(math.MaxInt, func() {
		if err := r.find(r.ctx); err != nil {
			q.failed(r, err)
		} else {
			q.finish(r, nil)
		}
	})
}

// failed tries again: slowly after a refusal, because the permission may come back.
func (q *removals) failed(r *Removal, err error) {
	if cause := q.s.Err(); cause != nil {
		q.finish(r, cause)
		return
	}
	if errors.Is(err, zk.ErrNoAuth) {
		err = q.s.missing("delete", r.path, err)
	}
	most := min(30*time.Second, q.s.Timeout())
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	if outcomeOf(err) == answered && !r.told {
		r.told, r.err, q.refused = true, opError("delete", r.path, err), q.refused+1
		close(r.done)
		r.waits = rounds.Backoff{First: min(2*time.Second, most), Most: most}
		q.s.cfg.log.Error("zookeeper refuses to remove a node; the removal is tried again slowly", "path", r.path, "err", err)
	}
	least := time.Microsecond // no timer is due at once: see .ci/race
	if r.told {
		// Without the second bound, a session full of such nodes would send 1,600 vain deletes a second.
		least = max(min(500*time.Millisecond, most/2), time.Duration(q.refused)*20*time.Millisecond)
	}
	r.timer = time.AfterFunc(max(least, r.waits.Next()), func() {
		if r.find != nil {
			q.search(r)
		} else {
			q.owe(r)
		}
	})
}

// finish ends a removal. err is nil if the node is gone.
func (q *removals) finish(r *Removal, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.all[r.path]
	i := slices.Index(all, r)
	if i < 0 { // ended with the session
		return
	}
	if q.all[r.path] = slices.Delete(all, i, i+1); len(all) == 1 {
		delete(q.all, r.path)
	}
	if !r.told {
		r.told, r.err = true, err
		close(r.done)
		return
	}
	q.refused--
	if err == nil {
		q.s.cfg.log.Info("zookeeper has removed a node that it had refused to remove", "path", r.path)
	}
}

func (q *removals) end() {
	q.mu.Lock()
	q.over, q.owed = true, nil
	all := slices.Concat(slices.Collect(maps.Values(q.all))...)
	for _, r := range all {
		if r.timer != nil {
			r.timer.Stop()
		}
	}
	q.mu.Unlock()
	for _, r := range all {
		q.finish(r, q.s.Err())
	}
}
