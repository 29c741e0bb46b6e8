package rwlock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Contenders get the lock in order: writers alone, and readers without a writer between them together.
func TestOrder(t *testing.T) {
	for _, q := range []string{"W R W", "R W R", "W W W", "R R R R", "R W R R R W W R", "W R R R R R R R R R R W R"} {
		t.Run(strings.ReplaceAll(q, " ", ""), func(t *testing.T) {
			t.Parallel()
			testOrder(t, strings.Fields(q))
		})
	}
}

type contender struct {
	kind  string
	lease *queue.Lease
	got   <-chan error
}

func testOrder(t *testing.T, kinds []string) {
	dir := testserver.Path(t)
	gate, err := newLock(t, connect(t), dir).Acquire(patient(t))
	must(t, err)
	var waiting []*contender
	for i, kind := range kinds {
		rw := newLock(t, connect(t), dir)
		c := &contender{kind: kind}
		c.got = queued(t, dir, i+2, func(ctx context.Context) (err error) {
			c.lease, err = acquire(rw, kind)(ctx)
			return err
		})
		waiting = append(waiting, c)
	}
	observer := newLock(t, connect(t), dir)
	wantPicture(t, observer, "W* "+strings.Join(kinds, " "))
	must(t, gate.Release(patient(t)))
	for len(waiting) > 0 {
		wave := together(waiting)
		for _, c := range wave {
			must(t, receive(t, "the next", c.got))
		}
		for _, c := range waiting[len(wave):] {
			pending(t, "one behind", c.got)
		}
		want := strings.Repeat(wave[0].kind+"* ", len(wave))
		for _, c := range waiting[len(wave):] {
			want += c.kind + " "
		}
		wantPicture(t, observer, strings.TrimSpace(want))
		for i, c := range wave {
			// All of one wave hold the lock until the last leaves, and keep the next wave out.
			must(t, c.lease.Err())
			for _, behind := range waiting[len(wave):] {
				pending(t, "one behind", behind.got)
			}
			must(t, c.lease.Release(patient(t)))
			testserver.WaitChildren(t, dir, len(waiting)-i-1)
		}
		waiting = waiting[len(wave):]
	}
}

func acquire(rw *rwlock.RWMutex, kind string) func(context.Context) (*queue.Lease, error) {
	if kind == "W" {
		return rw.Acquire
	}
	return rw.Reader().Acquire
}

// together returns the contenders at the head of a queue that may hold the lock at the same time.
func together(all []*contender) []*contender {
	n := 1
	for all[0].kind == "R" && n < len(all) && all[n].kind == "R" {
		n++
	}
	return all[:n]
}

// A try never waits, and leaves nothing behind. It gets the read lock beside readers unless a writer waits, and the write
// lock only if there is no contender.
func TestTry(t *testing.T) {
	for _, tt := range []struct {
		present     []string // holders, then waiters
		read, write bool
	}{
		{nil, true, true},
		{[]string{"R"}, true, false},
		{[]string{"R", "R"}, true, false},
		{[]string{"W"}, false, false},
		{[]string{"R", "W"}, false, false},
		{[]string{"W", "R"}, false, false},
	} {
		t.Run(strings.Join(tt.present, ""), func(t *testing.T) {
			dir := persistentDir(t)
			var nodes []node
			for _, kind := range tt.present {
				nodes = append(nodes, forge(t, dir, curator(map[string]string{"R": queue.PrefixRead, "W": queue.PrefixWrite}[kind])))
			}
			rw := newLock(t, connect(t), dir)
			for range 5 {
				wantTry(t, "TryRLock", rw.TryRLock, patient(t), tt.read)
				if rw.Reader().Held() != tt.read {
					t.Errorf("a reader is held: %v", rw.Reader().Held())
				}
				if tt.read {
					must(t, rw.RUnlock())
				}
				wantTry(t, "TryLock", rw.TryLock, patient(t), tt.write)
				if rw.Held() != tt.write {
					t.Errorf("Held: %v", rw.Held())
				}
				if tt.write {
					must(t, rw.Unlock())
				}
				// At once, since the next try must not find the node of this one.
				if n := len(testserver.Children(t, dir)); n != len(nodes) {
					t.Fatalf("%d nodes after the tries, %d before", n, len(nodes))
				}
			}
			wantErr(t, "Unlock", rw.Unlock(), rwlock.ErrNotHeld)
			wantErr(t, "RUnlock", rw.RUnlock(), rwlock.ErrNotHeld)
			tryHandles(t, rw, tt.read, tt.write)
			for _, n := range nodes {
				n.delete()
			}
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// tryHandles tries to take the lock as a handle.
func tryHandles(t *testing.T, rw *rwlock.RWMutex, read, write bool) {
	t.Helper()
	for _, try := range []struct {
		get  func(context.Context) (*queue.Lease, error)
		want bool
	}{{rw.Reader().TryAcquire, read}, {rw.TryAcquire, write}, {rw.Reader().TryAcquire, read}} {
		l, err := try.get(patient(t))
		if try.want {
			must(t, err)
			must(t, l.Release(patient(t)))
			continue
		}
		if l != nil {
			t.Error("a lease beside an error")
		}
		wantErr(t, "a try for a handle", err, queue.ErrBusy)
	}
}

// When a waiting writer leaves, in whatever way, the readers behind it get the lock at once beside the present readers.
func TestQueuedWriterGoes(t *testing.T) {
	const readers = 3
	for name, how := range map[string]func(t *testing.T, cancel context.CancelFunc, expire, remove func()){
		"cancelled": func(_ *testing.T, cancel context.CancelFunc, _, _ func()) { cancel() },
		"expired":   func(_ *testing.T, _ context.CancelFunc, expire, _ func()) { expire() },
		"deleted":   func(_ *testing.T, _ context.CancelFunc, _, remove func()) { remove() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := persistentDir(t)
			inside := newLock(t, connect(t), dir)
			must(t, inside.RLock(patient(t)))
			m, proxy := proxied(t)
			writer := newLock(t, m, dir)
			ctx, cancel := context.WithCancel(patient(t))
			defer cancel()
			written := background(func() error { return writer.Lock(ctx) })
			testserver.WaitChildren(t, dir, 2)
			var entered []<-chan error
			var locks []*rwlock.RWMutex
			for i := range readers {
				rw := newLock(t, connect(t), dir)
				entered = append(entered, queued(t, dir, i+3, rw.RLock))
				locks = append(locks, rw)
			}
			wantPicture(t, inside, "R* W R R R")
			all, err := inside.Contenders(patient(t))
			must(t, err)
			for _, ch := range entered {
				pending(t, "RLock behind a writer", ch)
			}
			how(t, cancel, func() { expire(t, proxy, m) }, func() { testserver.Delete(t, all[1].Path) })
			for _, ch := range entered {
				must(t, receive(t, "RLock when the writer has gone", ch))
			}
			if !inside.Reader().Held() {
				t.Error("the reader inside has lost its lock")
			}
			if name != "cancelled" { // it is at the end of the queue again
				testserver.WaitChildren(t, dir, readers+2)
				zktest.Eventually(t, testserver.Patience, "the writer behind all readers", func() bool {
					return picture(t, inside) == "R* R* R* R* W"
				})
				pending(t, "Lock", written)
			} else {
				wantErr(t, "Lock", receive(t, "the cancelled Lock", written), context.Canceled)
			}
			for _, rw := range append(locks, inside) {
				must(t, rw.RUnlock())
			}
			if name != "cancelled" {
				must(t, receive(t, "Lock when all readers have gone", written))
				must(t, writer.Unlock())
			}
			testserver.WaitChildren(t, dir, 0)
		})
	}
}
