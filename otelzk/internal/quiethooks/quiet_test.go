package quiethooks

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

const path = "/locks/one"

func mutex(w *world, m *session.Manager, path string, opts ...zklock.Option) *zklock.Mutex {
	w.Helper()
	mx, err := zklock.New(m, path, opts...)
	w.must(err)
	return mx
}

func rw(w *world, m *session.Manager, opts ...rwlock.Option) *rwlock.RWMutex {
	w.Helper()
	l, err := rwlock.New(m, path, opts...)
	w.must(err)
	return l
}

func sem(w *world, m *session.Manager, limit int, opts ...semaphore.Option) *semaphore.Semaphore {
	w.Helper()
	s, err := semaphore.New(m, path, limit, opts...)
	w.must(err)
	return s
}

// ofMutexes is the lock of two mutexes at one path.
func ofMutexes(w *world, opts ...zklock.Option) lock {
	ours, theirs := mutex(w, w.ours, path, opts...), mutex(w, w.theirs, path, opts...)
	return lock{take: of(ours.Acquire), try: of(ours.TryAcquire), block: of(theirs.Acquire), blocks: 1, contenders: theirs.Contenders}
}

func mutexes(opts ...zklock.Option) func(*world) {
	return func(w *world) {
		k := ofMutexes(w, opts...)
		w.contend(k)
		w.suffer(k)
	}
}

func semaphores(limit int, opts ...semaphore.Option) func(*world) {
	return func(w *world) {
		ours, theirs := sem(w, w.ours, limit, opts...), sem(w, w.theirs, limit, opts...)
		k := lock{take: of(ours.Acquire), try: of(ours.TryAcquire), block: of(theirs.Acquire), blocks: limit, contenders: theirs.Contenders}
		w.contend(k)
		w.suffer(k)
	}
}

// scenarios are of all kinds of lock.
var scenarios = map[string]func(*world){
	"mutex":                         mutexes(),
	"mutex with WithLocalHandover":  mutexes(zklock.WithLocalHandover(2)),
	"mutex with WithLazyRelease":    mutexes(zklock.WithLazyRelease(settled / 2)),
	"semaphore of 1":                semaphores(1),
	"semaphore of 2":                semaphores(2),
	"semaphore in Curator's layout": semaphores(2, semaphore.WithCuratorLayout()),
	"mutex that is asked for":       revocable,
	"writer behind a writer": func(w *world) {
		readWrite(w, writer, writer, 1)
	},
	"writer behind two readers": func(w *world) {
		readWrite(w, writer, reader, 2)
	},
	"reader behind a writer": func(w *world) {
		readWrite(w, reader, writer, 1)
	},
	"upgrade and downgrade":             grades,
	"several leases, and another limit": weights,
	"several locks":                     several,
	"election":                          elections,
}

// side is one half of a read-write lock.
type side interface {
	Acquire(ctx context.Context) (*queue.Lease, error)
	TryAcquire(ctx context.Context) (*queue.Lease, error)
}

func writer(l *rwlock.RWMutex) side { return l }
func reader(l *rwlock.RWMutex) side { return l.Reader() }

func readWrite(w *world, our, their func(*rwlock.RWMutex) side, blocks int) {
	ours, theirs := rw(w, w.ours), rw(w, w.theirs)
	k := lock{
		take: of(our(ours).Acquire), try: of(our(ours).TryAcquire), block: of(their(theirs).Acquire), blocks: blocks,
		contenders: theirs.Contenders,
	}
	w.contend(k)
	w.suffer(k)
}

// grades goes on as a reader, with a writer behind it, and does not become a writer.
func grades(w *world) {
	ours, theirs := rw(w, w.ours), rw(w, w.theirs)
	ctx := queue.WithOwner(w.Context())
	w.step("downgrade", func() {
		held := w.get(of(theirs.Reader().Acquire))
		done := make(chan error)
		go func() { done <- ours.Lock(ctx) }()
		w.pass(long)
		w.release(held)
		w.must(<-done)
		w.pass(short)
		next := w.begin(of(theirs.Acquire))
		w.must(ours.RLock(ctx))
		w.pass(short)
		w.must(ours.Unlock())
		w.pass(long)
		if err := ours.Lock(ctx); !errors.Is(err, rwlock.ErrUpgrade) {
			w.Fatal(err)
		}
		w.must(ours.RUnlock())
		next.give()
	})
}

// weights takes several leases of a semaphore at once, while the limit changes.
func weights(w *world) {
	ours, theirs := sem(w, w.ours, 3), sem(w, w.theirs, 3)
	two := of(func(ctx context.Context) (*queue.Lease, error) { return ours.AcquireN(ctx, 2) })
	w.step("two of three", func() {
		held := []lease{w.get(of(theirs.Acquire)), w.get(of(theirs.Acquire))}
		c := w.begin(two)
		w.pass(long)
		w.releaseAll(held, short)
		c.give()
	})
	w.step("another limit", func() {
		held := w.get(of(func(ctx context.Context) (*queue.Lease, error) { return theirs.AcquireN(ctx, 3) }))
		c := w.begin(two)
		w.pass(long)
		lowered := make(chan error, 1)
		go func() { lowered <- ours.Resize(w.Context(), 2) }() // it waits for a lease, behind c
		w.pass(long)
		w.release(held)
		w.must(<-lowered)
		w.pass(long)
		w.must(theirs.Resize(w.Context(), 5))
		w.pass(long)
		c.give()
	})
}

func revocable(w *world) {
	var ours *queue.Lease
	mx := mutex(w, w.ours, path)
	theirs := mutex(w, w.theirs, path)
	k := lock{take: of(mx.Acquire), try: of(mx.TryAcquire), block: of(theirs.Acquire), blocks: 1, contenders: theirs.Contenders}
	w.contend(k)
	w.suffer(k)
	w.step("revoked", func() {
		held := w.get(k.block)
		c := w.begin(k.take)
		w.pass(long)
		w.release(held)
		ours = c.get().(*queue.Lease)
		w.must(zklock.Revoke(w.Context(), w.theirs, ours.Path()))
		w.pass(short)
		select {
		case <-ours.Revoked():
		default:
			w.Errorf("the holder is not asked")
		}
		w.release(ours)
	})
}

// several takes three locks together, of which the second is taken.
func several(w *world) {
	all, err := zklock.Multi(mutex(w, w.ours, "/a"), mutex(w, w.ours, "/b"), mutex(w, w.ours, "/c"))
	w.must(err)
	theirs := mutex(w, w.theirs, "/b")
	w.contend(lock{take: of(all.Acquire), try: of(all.TryAcquire), block: of(theirs.Acquire), blocks: 1, several: true})
}

// elections leads twice, and watches another lead in between.
func elections(w *world) {
	candidate := func(m *session.Manager, id string) *election.Election {
		e, err := election.New(m, path, election.WithID(id))
		w.must(err)
		return e
	}
	ours, theirs := candidate(w.ours, "ours"), candidate(w.theirs, "theirs")
	run := func(e *election.Election) (stop func()) {
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = e.Run(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			})
		}()
		return func() { cancel(); <-done }
	}
	w.step("terms", func() {
		stopTheirs := run(theirs)
		w.pass(long)
		stopOurs := run(ours)
		w.pass(long)
		if _, err := ours.Leader(w.Context()); err != nil {
			w.Error(err)
		}
		theirs.Resign()
		w.pass(long)
		if !ours.IsLeader() {
			w.Error("it does not lead")
		}
		ours.Resign()
		w.pass(long)
		w.expire()
		w.pass(settled)
		stopOurs()
		stopTheirs()
	})
}

// A session sends the same with hooks as without them.
func TestHooksChangeNoRequest(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			without := play(t, scenario, nil, nil)
			for which, h := range hooks {
				t.Run(which, func(t *testing.T) {
					if which != "all hooks" && which != "otelzk and lockz" {
						longtest.Only(t)
					}
					opts, look := h()
					if diff := cmp.Diff(without, play(t, scenario, opts, look)); diff != "" {
						t.Errorf("with hooks (+) it sends other requests than without (-):\n%s", diff)
					}
				})
			}
		})
	}
}
