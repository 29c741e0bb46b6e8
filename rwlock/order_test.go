package rwlock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
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
			for _, n := range nodes {
				n.delete()
			}
			testserver.WaitChildren(t, dir, 0)
		})
	}
}
