package hostileservers

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	lieTime = time.Minute // for how long a lie is told
	// lieRequests is more than a call sends in that time. The loops soon make only one round in half
	// a second or more, of up to ten requests. A loop that spins sends as many within milliseconds.
	lieRequests = 1500
)

// spin is a lie and the call that meets it.
type spin struct {
	name  string
	kinds []string // of kinds; none: those whose lock has a queue
	*lie
	hold bool // the honest one holds the lock meanwhile
	call func(w *world, ctx context.Context, m *session.Manager) error
}

// among matches nodes of contenders that the victim has made, or of others.
func among(ours bool) func(l *link, node string) bool {
	return func(l *link, node string) bool {
		_, ok := queue.ParseNode(path.Base(node))
		return ok && slices.Contains(l.made, path.Base(node)) == ours
	}
}

func creates(r request) bool { return r.op == zktest.OpCreate } // directories are containers
func deletes(r request) bool { return r.op == zktest.OpDelete }
func isDir(r request) bool   { return r.path == lockPath }

var queued = []string{"fair", "local", "rwlock", "downgrade", "semaphore", "Curator's semaphore", "multi"}

var spins = []spin{
	{name: "it never lists us", lie: hiding("")},
	{name: "the directory is never there", lie: refusing(codec.CodeNoNode, creates)},
	{name: "nor can it be made", lie: refusing(codec.CodeNoNode, func(r request) bool {
		return creates(r) || r.op == zktest.OpCreateContainer && strings.HasPrefix(r.path, lockPath)
	})},
	{name: "every create is lost", lie: refusing(codec.CodeConnectionLoss, creates)},
	{name: "those ahead are not there", lie: phantoms(queue.PrefixLock), kinds: []string{"fair", "local", "multi"}},
	{name: "writers ahead are not there", lie: phantoms(queue.PrefixWrite), kinds: []string{"rwlock", "downgrade"}},
	{name: "leases ahead are not there", lie: phantoms(queue.PrefixLease), kinds: []string{"semaphore"}},
	{name: "those ahead change at once", lie: telling(codec.EventDataChanged, among(false)), hold: true},
	{name: "our own node changes at once", lie: telling(codec.EventDataChanged, among(true)), hold: true},
	{name: "an old configuration", kinds: []string{"semaphore"}, lie: oldConfig(lockPath)},
	{name: "an old configuration of the second of several", kinds: []string{"multi"}, lie: oldConfig(lockPath + "/second")},
	{name: "a configuration that cannot be set", kinds: []string{"semaphore"}, lie: unset},
	{name: "Resize, where it cannot be set", kinds: []string{"semaphore"}, lie: unset,
		call: func(w *world, ctx context.Context, m *session.Manager) error {
			s, err := semaphore.New(m, lockPath, 3)
			w.Must(err)
			return s.Resize(ctx, 4)
		}},
	{name: "a revocation that is lost", hold: true, kinds: []string{"fair"},
		lie:  refusing(codec.CodeConnectionLoss, func(r request) bool { return r.op == zktest.OpSetData }),
		call: revokeWaiter},
	{name: "the gate is lost", lie: telling(codec.EventDeleted, func(l *link, node string) bool {
		return path.Dir(node) == lockPath+"/locks" && among(true)(l, node)
	}), hold: true, kinds: []string{"Curator's semaphore"}},
	{name: "the first of several is lost", lie: telling(codec.EventDeleted, func(l *link, node string) bool {
		return path.Dir(node) == lockPath && among(true)(l, node)
	}), kinds: []string{"multi"}, call: firstOfTwo},
	{name: "the first of several never lists us", lie: hiding(lockPath), kinds: []string{"multi"}},
	{name: "the second of several never lists us", lie: hiding(lockPath + "/second"), kinds: []string{"multi"}},
	{name: "the last of several never lists us", lie: hiding(lockPath + "/third"), kinds: []string{"multi"}},
	{name: "no delete is carried out", lie: refusing(codec.CodeConnectionLoss, deletes), kinds: []string{"multi"}, hold: true},
	{name: "nodes are gone, and the slot is taken", lie: telling(codec.EventDeleted, among(true)), kinds: []string{"fair"}, call: slotTaken},
	{name: "a holder's node changes at once", lie: telling(codec.EventDataChanged, among(true)), kinds: []string{"fair", "rwlock", "semaphore", "multi"},
		call: holdOn},
}

// unset lies that the directory has no data and that it changes before every set.
var unset = &lie{
	swallow: func(r request) bool { return r.op == zktest.OpSetData || r.op == zktest.OpMulti },
	answer: func(_ *link, r request, frame []byte) [][]byte {
		if r.op == zktest.OpSetData || r.op == zktest.OpMulti {
			return refusal(frame, codec.CodeBadVersion)
		}
		return data(isDir, func(b []byte, stat int) []byte {
			return append(words(b[:bodyAt], 0), b[stat:]...)
		})(r, frame)
	},
}

// oldConfig is a lie: the data of a directory are of version 0.
func oldConfig(dir string) *lie {
	return &lie{answer: func(_ *link, r request, frame []byte) [][]byte {
		fits := func(r request) bool { return r.path == dir }
		return data(fits, func(b []byte, stat int) []byte { setLong(b, stat+8, 0); return b })(r, frame)
	}}
}

// hiding is a lie: the listings of a directory, or of all, do not show our nodes.
func hiding(dir string) *lie {
	return listing(func(l *link, r request, names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool {
			return (dir == "" || r.path == dir) && slices.Contains(l.made, name)
		})
	})
}

// phantoms is a lie: contenders are listed ahead of all others, and do not exist when asked for.
func phantoms(prefix string) *lie {
	return listing(func(_ *link, _ request, names []string) []string {
		for i := range 9 {
			names = append(names, fmt.Sprintf("_c_phantom-%s%010d", prefix, i))
		}
		return names
	})
}

// slotTaken waits for the slot of a mutex whose first hold was lost and not given back.
func slotTaken(w *world, ctx context.Context, m *session.Manager) error {
	mx, err := zklock.New(m, lockPath)
	w.Must(err)
	if err := mx.Lock(ctx); err != nil {
		return err
	}
	<-mx.Done() // of the loss
	defer func() { _ = mx.Unlock() }()
	return mx.Lock(ctx)
}

// holdOn takes the lock and holds it until ctx ends.
func holdOn(w *world, ctx context.Context, m *session.Manager) error {
	g, err := w.lock(m).get(ctx, 0)
	if err != nil {
		return err
	}
	for _, l := range g.leases {
		_, _ = l.Token(ctx) // it watches its node at once
	}
	<-ctx.Done()
	return errors.Join(ctx.Err(), g.Release(context.Background()))
}

// firstOfTwo takes a mutex and waits for another, which is taken.
func firstOfTwo(w *world, ctx context.Context, m *session.Manager) error {
	taken, err := zklock.New(w.Connect(), lockPath+"/taken")
	w.Must(err)
	w.Must(taken.Lock(ctx))
	defer func() { _ = taken.Unlock() }()
	first, err := zklock.New(m, lockPath)
	w.Must(err)
	second, err := zklock.New(m, lockPath+"/taken")
	w.Must(err)
	both, err := zklock.Multi(first, second)
	w.Must(err)
	_, err = both.Acquire(ctx)
	return err
}

// revokeWaiter asks a contender that waits at the end of the queue to leave.
func revokeWaiter(w *world, ctx context.Context, m *session.Manager) error {
	node, err := w.Session(m).Enter(ctx, session.NewNode{Dir: lockPath, Name: "lock-1000000000", Fixed: true})
	w.Must(err)
	defer func() { <-node.Remove(ctx).Done() }()
	return zklock.Revoke(ctx, m, node.Path)
}

// A server gives the same wrong answer again and again. No call repeats its request as fast as the
// server answers. The call ends with its context, and when the lies end the lock is as before. The quick tests
// have each lie with one of the locks in turn.
func TestNoSpin(t *testing.T) {
	for turn, s := range spins {
		of := s.kinds
		if of == nil {
			of = queued
		}
		for i, name := range of {
			if !longtest.On() && i != turn%len(of) {
				continue
			}
			k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
			t.Run(s.name+"/"+name, func(t *testing.T) {
				inWorld(t, k, func(w *world) { w.spin(s) })
			})
		}
	}
}

func (w *world) spin(s spin) {
	honest, victim := w.open(nil)
	defer w.close(honest, victim)
	held := w.occupy(honest, s.hold)

	ctx, cancel := context.WithTimeout(context.Background(), lieTime)
	defer cancel()
	w.middle.tellLie(s.lie, cancel)
	from := w.middle.count()
	var err error
	w.within("the call", lieTime, func() {
		if s.call != nil {
			err = s.call(w, ctx, victim)
		} else if _, err = w.lock(victim).get(ctx, 0); err == nil {
			w.Errorf("the lock is held")
		}
	})
	several := w.kind.name == "multi" && errors.Is(err, queue.ErrConflict) // the lie names one kind of lock in all directories
	if !errors.Is(err, context.DeadlineExceeded) && !several {
		w.Errorf("the call ends with %v", err)
	}
	if n := w.middle.count() - from; n > lieRequests {
		w.Errorf("more than %d requests in %v", lieRequests, lieTime)
	}
	w.middle.calm()
	for _, g := range held {
		w.Want("release", g.Release(context.Background()), nil)
	}
	w.round("victim", w.lock(victim), 0, recovery, true)
	w.round("honest", w.lock(honest), 0, recovery, true)
	w.empty()
}

// occupy makes ten nodes and removes them, so that the next sequence number is not the first. If hold
// is set, it takes the lock in full.
func (w *world) occupy(m *session.Manager, hold bool) (held []*grant) {
	lock := w.lock(m)
	ctx, cancel := context.WithTimeout(context.Background(), recovery)
	defer cancel()
	take := func() *grant {
		g, err := lock.get(ctx, 2) // a writer, and one lease
		w.Must(err)
		return g
	}
	for range 10 {
		w.Must(take().Release(ctx))
	}
	for sum := 0; hold && sum < w.kind.room; {
		g := take()
		held, sum = append(held, g), sum+g.weight
	}
	return held
}

// Two wrong answers cause no wait, because an operator may have deleted our node.
func TestOnceOrTwiceIsAtOnce(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			inWorld(t, k, func(w *world) {
				honest, victim := w.open(nil)
				defer w.close(honest, victim)
				lists := 0
				w.middle.tellLie(listing(func(l *link, _ request, names []string) []string {
					if lists++; lists > 4 { // a round lists twice
						return names
					}
					return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(l.made, name) })
				}), func() {})
				began := time.Now()
				g, err := w.lock(victim).get(w.Context(), 0)
				w.Must(err)
				if took := time.Since(began); took > 20*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				w.Want("release", g.Release(w.Context()), nil)
			})
		})
	}
}
