package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// side returns how a lock is taken on one side, W or R.
func side(rw *rwlock.RWMutex, kind string) interface {
	Lock(context.Context) error
	Unlock() error
} {
	if kind == "W" {
		return rw
	}
	return rw.Reader()
}

// Contenders get the lock in order: writers alone, and readers without a writer between them together. All that hold it
// together keep out the next until the last of them leaves.
func TestOrder(t *testing.T) {
	for _, kinds := range []string{"W R W", "R W R", "W W W", "R W R R R W W R", "W R R R R R R R R R R W R"} {
		run(t, func(w world) {
			gate := w.lock()
			w.Must(gate.Lock(w.Context()))
			type contender struct {
				kind   string
				unlock func() error
				*bubble.Call
			}
			var waiting []contender
			for kind := range strings.FieldsSeq(kinds) {
				l := side(w.lock(), kind)
				waiting = append(waiting, contender{kind, l.Unlock, w.begin(l.Lock)})
			}
			w.picture("W* " + kinds)
			w.Must(gate.Unlock())
			for len(waiting) > 0 {
				n := 1
				for waiting[0].kind == "R" && n < len(waiting) && waiting[n].kind == "R" {
					n++
				}
				for i, c := range waiting[:n] {
					w.Must(c.Err())
					want := strings.Repeat(c.kind+"* ", n-i)
					for _, behind := range waiting[n:] {
						behind.Waits("others hold")
						want += behind.kind + " "
					}
					w.picture(strings.TrimSpace(want))
					w.Must(c.unlock())
				}
				waiting = waiting[n:]
			}
		})
	}
}

// A try never waits, and leaves nothing behind. It gets the read lock beside readers unless a writer waits, and the write
// lock only if there is no contender.
func TestTry(t *testing.T) {
	for present, c := range map[string]struct{ read, write bool }{ // holders, then waiters
		"": {true, true}, "R": {true, false}, "RR": {true, false}, "W": {false, false}, "RW": {false, false}, "WR": {false, false},
	} {
		run(t, func(w world) {
			for _, kind := range present {
				w.Forge(dir, map[rune]string{'R': queue.PrefixRead, 'W': queue.PrefixWrite}[kind])
			}
			rw := w.lock()
			for range 3 {
				w.try(present+": TryRLock", rw.TryRLock, c.read)
				w.held(rw, false, c.read)
				if c.read {
					w.Must(rw.RUnlock())
				}
				w.try(present+": TryLock", rw.TryLock, c.write)
				w.held(rw, c.write, false)
				if c.write {
					w.Must(rw.Unlock())
				}
				w.WantNodes(present, dir, len(present))
			}
		})
	}
}

// Ten readers, each in a session of its own, wait behind a writer that holds the lock and others that wait. When the
// last of the writers leaves, all readers get the lock without a request: in this test no request gets through. Before
// that, each reader has listed the directory at most once, when the last but one writer left. So there is no herd that
// lists the directory at the hand-over. A writer behind a writer lists once, since that may have left a reader in its
// place. A writer behind readers only takes the lock over without a request.
func TestNoHerd(t *testing.T) {
	const tenReaders = "RRRRRRRRRR"
	for _, c := range []struct {
		ahead, waits string
		listings     int // of each that waits
		blocked      bool
	}{
		{"W", tenReaders, 0, true},
		{"WW", tenReaders, 0, true},  // both are watched
		{"WWW", tenReaders, 1, true}, // the first is not watched, and may still be there when the second leaves
		{"WWWWW", tenReaders, 1, true},
		{"W", "W", 1, false},
		{"R", "W", 0, true},
	} {
		t.Run(fmt.Sprint(c.ahead, " before ", c.waits), func(t *testing.T) {
			run(t, func(w world) {
				var ahead, entered []*bubble.Call
				var leave []func() error
				for _, kind := range c.ahead {
					l := side(w.lock(), string(kind))
					ahead, leave = append(ahead, w.begin(l.Lock)), append(leave, l.Unlock)
				}
				var sessions []*session.Manager
				for _, kind := range c.waits {
					m := w.Connect()
					sessions, entered = append(sessions, m), append(entered, w.begin(side(w.on(m), string(kind)).Lock))
				}
				w.ResetRequests()
				for i, unlock := range leave {
					w.Must(ahead[i].Err())
					w.Pass(0)
					if i == len(leave)-1 && c.blocked {
						for _, m := range sessions {
							w.HoldRequest(w.of(m, anything))
						}
					}
					w.Must(unlock())
				}
				for i, m := range sessions {
					w.Must(entered[i].Err())
					// In the end, a holder gets its own node, to watch it.
					toEnter := w.Count(w.of(m, anything)) - w.Count(w.of(m, zktest.Any(zktest.OpGetData)))
					if lists := w.Count(w.of(m, zktest.Any(zktest.OpGetChildren2))); toEnter != c.listings || lists != c.listings {
						t.Errorf("contender %d: %d requests, of which %d were listings; want %d", i, toEnter, lists, c.listings)
					}
				}
				w.Heal()
			})
		})
	}
}

// A free lock costs the same for readers and writers, however many readers hold it: a create and a listing that are sent
// together, a get that sets the watch on the own node, and a delete. A downgrade costs as much as an acquisition. A place
// that one side of a lock keeps is given up before the other side sends anything: to wait for the event would take a round
// trip.
func TestRequests(t *testing.T) {
	run(t, func(w world) {
		m := w.Connect()
		rw := w.on(m)
		cost := func(what string, gets int, f func() error) {
			t.Helper()
			w.ResetRequests()
			w.Must(f())
			for op, want := range map[zktest.Op]int{
				zktest.OpCreate: 1, zktest.OpGetChildren2: 1, zktest.OpGetData: gets, zktest.OpDelete: 1,
			} {
				expect.Requests(t, fmt.Sprint(what, ": ", op), w.Server, w.of(m, zktest.Any(op)), want)
			}
			expect.Requests(t, what, w.Server, w.of(m, anything), 3+gets)
		}
		once := func(l interface {
			Do(context.Context, func(context.Context) error) error
		}) func() error {
			return func() error {
				return l.Do(w.Context(), func(context.Context) error { w.Pass(time.Second); return nil })
			}
		}
		cost("write", 1, once(rw))
		cost("read", 1, once(rw.Reader()))
		for range 10 {
			w.Forge(dir, queue.PrefixRead)
		}
		cost("read beside ten", 1, once(rw.Reader()))
		for _, node := range w.Nodes(dir) {
			w.Remove(node)
		}
		owner := queue.WithOwner(w.Context())
		w.Must(rw.Lock(owner))
		w.Pass(time.Second)
		cost("downgrade", 0, func() error { return errors.Join(rw.RLock(owner), rw.Unlock()) })
		w.Must(rw.RUnlock())

		kept := w.on(m, rwlock.WithLazyRelease(time.Minute))
		for _, sides := range []string{"RW", "WR"} {
			l := side(kept, sides[:1])
			w.Must(errors.Join(l.Lock(w.Context()), l.Unlock()))
			node := w.Nodes(dir)[0]
			w.ResetRequests()
			w.Must(side(kept, sides[1:]).Lock(w.Context()))
			var writes []zktest.Request
			for _, r := range w.Requests() {
				if path.Dir(r.Path) == dir && (r.Op == zktest.OpCreate || r.Op == zktest.OpDelete) {
					writes = append(writes, r)
				}
			}
			if len(writes) != 2 || writes[0].Op != zktest.OpDelete || writes[0].Path != node {
				t.Errorf("%s: requests %+v", sides, writes)
			}
			w.Must(side(kept, sides[1:]).Unlock())
			w.Pass(2 * time.Minute)
		}
	})
}

// A session that has room for one node has it for the other side as soon as the place that is kept is gone.
func TestLazyOtherSideAtLimit(t *testing.T) {
	run(t, func(w world) {
		rw := w.on(w.Connect(session.WithNodeLimits(1, 1<<20)), lazy)
		for range 3 {
			w.Must(errors.Join(rw.RLock(w.Context()), rw.RUnlock(), rw.Lock(w.Context()), rw.Unlock()))
		}
	})
}

// Readers that share a node are all told that another client asks for it, and the next reader gets a node of its own.
func TestSharedReadersAreRevoked(t *testing.T) {
	run(t, func(w world) {
		rw := w.lock(lazy)
		var leases []*queue.Lease
		acquire := func() {
			l, err := rw.Reader().Acquire(w.Context())
			w.Must(err)
			leases = append(leases, l)
		}
		acquire()
		acquire()
		w.Pass(time.Second)
		w.Write(leases[0].Path(), queue.RevokeMessage)
		w.Await(leases[0].Revoked())
		w.Await(leases[1].Revoked())
		w.Must(leases[0].Err())
		acquire()
		if leases[0].Path() != leases[1].Path() || leases[2].Path() == leases[0].Path() {
			t.Errorf("nodes %s, %s, %s: want two readers at one, which the third does not join",
				leases[0].Path(), leases[1].Path(), leases[2].Path())
		}
	})
}
