package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A write holder that takes the read lock and unlocks the write lock goes on reading, while a writer behind it goes
// on waiting. Readers that came before that writer are let in.
func TestDowngrade(t *testing.T) {
	for name, downgrade := range map[string]func(owner context.Context, rw *rwlock.RWMutex) error{
		"RLock": func(owner context.Context, rw *rwlock.RWMutex) error {
			return errors.Join(rw.RLock(owner), rw.Unlock())
		},
		"TryRLock": func(owner context.Context, rw *rwlock.RWMutex) error {
			got, err := rw.TryRLock(owner)
			if !got {
				return errors.Join(errors.New("TryRLock is false"), err)
			}
			return rw.Unlock()
		},
		"re-entered": func(owner context.Context, rw *rwlock.RWMutex) error {
			return errors.Join(rw.Lock(owner), rw.RLock(owner), rw.RLock(owner),
				rw.Lock(owner), // an owner of both locks may write
				rw.Unlock(), rw.Unlock(), rw.Unlock(), rw.RUnlock())
		},
		"within Do": func(owner context.Context, rw *rwlock.RWMutex) error {
			return errors.Join(rw.Do(owner, rw.RLock), rw.Unlock())
		},
	} {
		for _, between := range longtest.Pick([]int{0, 3}, []int{0, 1, 3}) {
			t.Run(fmt.Sprintf("%s, %d readers between", name, between), func(t *testing.T) {
				testDowngrade(t, downgrade, between)
			})
		}
	}
}

func testDowngrade(t *testing.T, downgrade func(context.Context, *rwlock.RWMutex) error, between int) {
	dir := testserver.Path(t)
	rw := newLock(t, connect(t), dir)
	owner := queue.WithOwner(patient(t))
	must(t, rw.Lock(owner))
	all, err := rw.Contenders(patient(t))
	must(t, err)
	sequence := all[0].Sequence

	readers := newLock(t, connect(t), dir)
	var entered []<-chan error
	for i := range between {
		entered = append(entered, queued(t, dir, i+2, readers.RLock))
	}
	watching := make(chan struct{}, 10)
	writer := newLock(t, connect(t, watchHook(watching)), dir)
	written := queued(t, dir, between+2, writer.Lock)
	receive(t, "the writer to watch", watching)

	must(t, downgrade(owner, rw))
	for _, ch := range entered {
		must(t, receive(t, "a reader behind", ch))
	}
	if between < 2 { // otherwise it watches them, and need not list
		receive(t, "the writer to watch again", watching)
	}
	wantPicture(t, rw, strings.Repeat("R* ", between+1)+"W")
	if all, err = rw.Contenders(patient(t)); err != nil || all[0].Sequence != sequence {
		t.Errorf("%+v, %v; want the writer's sequence %d", all, err, sequence)
	}
	pending(t, "the writer behind", written)
	if rw.Held() || !rw.Reader().Held() {
		t.Errorf("held: write %v, read %v", rw.Held(), rw.Reader().Held())
	}
	for range between {
		must(t, readers.RUnlock())
	}
	wantTry(t, "TryLock of another", newLock(t, connect(t), dir).TryLock, patient(t), false)
	wantPicture(t, rw, "R* W")
	pending(t, "the writer behind", written)

	must(t, rw.RUnlock())
	must(t, receive(t, "the writer behind", written))
	must(t, writer.Unlock())
	testserver.WaitChildren(t, dir, 0)
}

// An owner of both locks has two nodes of one sequence. Contenders shows both as held, whichever comes first by name,
// and either can be given up first.
func TestBothHeld(t *testing.T) {
	rw := newLock(t, connect(t), testserver.Path(t))
	for i := range 8 { // the uuids decide the order, and are random
		owner := queue.WithOwner(patient(t))
		must(t, rw.Lock(owner))
		must(t, rw.RLock(owner))
		if got := picture(t, rw); got != "W* R*" && got != "R* W*" {
			t.Fatalf("in the queue: %s", got)
		}
		first, second := rw.Unlock, rw.RUnlock
		if i%2 == 0 {
			first, second = second, first
		}
		must(t, first())
		must(t, second())
		wantPicture(t, rw, "")
	}
}

// Curator 5.5 creates the node that takes the writer's place itself. Contenders of this package behind it wait until
// that node is gone.
func TestCuratorDowngrades(t *testing.T) {
	dir := persistentDir(t)
	theirs := forge(t, dir, curator(queue.PrefixWrite))
	watching := make(chan struct{}, 10)
	writer := newLock(t, connect(t, watchHook(watching)), dir)
	written := queued(t, dir, 2, writer.Lock)
	receive(t, "the writer to watch", watching)
	reader := newLock(t, connect(t), dir)
	read := queued(t, dir, 3, reader.RLock)

	theirRead := theirs.beside()
	if got := picture(t, reader); got != "W* R* W R" && got != "R* W* W R" {
		t.Errorf("in the queue: %s", got)
	}
	theirs.delete()
	receive(t, "the writer to watch again", watching)
	wantPicture(t, reader, "R* W R")
	pending(t, "the writer behind", written)
	pending(t, "the reader behind that", read)
	theirRead.delete()
	must(t, receive(t, "the writer", written))
	pending(t, "the reader behind", read)
	must(t, writer.Unlock())
	must(t, receive(t, "the reader", read))
	must(t, reader.RUnlock())

	// A reader directly behind gets the lock beside the remaining reader.
	theirs = forge(t, dir, curator(queue.PrefixWrite))
	read = queued(t, dir, 2, reader.RLock)
	theirRead = theirs.beside()
	theirs.delete()
	must(t, receive(t, "the reader", read))
	wantPicture(t, reader, "R* R*")
	theirRead.delete()
	must(t, reader.RUnlock())
}

// An owner takes the read lock in the place of its write lock. If the write lock is lost, known or not, there is no
// such place.
func TestDowngradeOfLostLock(t *testing.T) {
	dir := persistentDir(t)
	m, proxy := proxied(t)
	rw := newLock(t, m, dir)
	owner := queue.WithOwner(patient(t))
	tests := []struct {
		name string
		lose func()
	}{
		{"session expired", func() {
			expire(t, proxy, m)
			waitLost(t, rw.Held)
		}},
		{"node deleted", func() { testserver.Delete(t, dir, testserver.Children(t, dir)[0]) }},
		{"node deleted on the way", func() {
			hold := proxy.HoldRequest(listing(dir))
			go func() {
				defer hold.Release()
				<-hold.Hit()
				for _, name := range testserver.Children(t, dir) {
					if n, _ := queue.ParseNode(name); n.Prefix == queue.PrefixWrite {
						testserver.Delete(t, dir, name)
					}
				}
			}()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			must(t, rw.Lock(owner))
			tt.lose()
			wantErr(t, "RLock", rw.RLock(owner), session.ErrLost)
			got, err := rw.TryRLock(owner)
			wantErr(t, "TryRLock", err, session.ErrLost)
			wantErr(t, "Reader.Do", rw.Reader().Do(owner, func(context.Context) error {
				t.Error("called")
				return nil
			}), session.ErrLost)
			if got || rw.Reader().Held() {
				t.Error("the read lock is held")
			}
			wantErr(t, "RUnlock", rw.RUnlock(), rwlock.ErrNotHeld)
			wantErr(t, "Unlock", rw.Unlock(), session.ErrLost)
			testserver.WaitChildren(t, dir, 0)
			must(t, rw.RLock(owner)) // it can lock again
			must(t, rw.RUnlock())
		})
	}
}

// Another goroutine of the owner unlocks the write lock while the read lock is taken in its place. Then that RLock
// waits in the queue like any other.
func TestUnlockDuringDowngrade(t *testing.T) {
	dir := persistentDir(t)
	begun := make(chan func(), 1) // called when an acquisition of the read lock begins
	releasing := make(chan struct{}, 10)
	m, proxy := proxied(t, session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			if a.Kind == "read" {
				select {
				case f := <-begun:
					f()
				default:
				}
			}
			return ctx, nil
		},
		Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
			releasing <- struct{}{}
			return ctx, nil
		},
	}))
	rw := newLock(t, m, dir)
	unlocked := make(chan error, 1)
	for name, unlock := range map[string]func(node string){
		"before anything is sent": func(string) { unlocked <- rw.Unlock() },
		"before its node is looked for": func(node string) {
			hold := proxy.HoldRequest(listing(dir))
			go func() {
				defer hold.Release()
				<-hold.Hit()
				go func() { unlocked <- rw.Unlock() }()
				<-releasing // its delete is held up, too
				if err := testserver.Admin(t).Delete(node, -1); err != nil {
					t.Error(err)
				}
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			owner := queue.WithOwner(patient(t))
			must(t, rw.Lock(owner))
			node := dir + "/" + testserver.Children(t, dir)[0]
			writer := newLock(t, connect(t), dir)
			written := queued(t, dir, 2, writer.Lock)
			begun <- func() { unlock(node) }
			read := background(func() error { return rw.RLock(owner) })
			must(t, receive(t, "the writer behind", written))
			must(t, receive(t, "Unlock", unlocked))
			testserver.WaitChildren(t, dir, 2)
			wantPicture(t, writer, "W* R")
			must(t, writer.Unlock())
			must(t, receive(t, "RLock", read))
			must(t, rw.RUnlock())
			testserver.WaitChildren(t, dir, 0)
			for len(releasing) > 0 {
				<-releasing
			}
		})
	}
}

// A downgrade that is cancelled returns at once and leaves nothing behind. The write lock stays held.
func TestCancelDowngrade(t *testing.T) {
	dir := persistentDir(t)
	m, proxy := proxied(t)
	rw := newLock(t, m, dir)
	owner, cancel := context.WithCancel(queue.WithOwner(patient(t)))
	defer cancel()
	must(t, rw.Lock(owner))
	hold := proxy.HoldRequest(zktest.On(zktest.OpCreate, dir))
	read := background(func() error { return rw.RLock(owner) })
	receive(t, "the create", hold.Hit())
	cancel()
	wantErr(t, "RLock", receive(t, "RLock", read), context.Canceled)
	hold.Release()
	wantErr(t, "RUnlock", rw.RUnlock(), rwlock.ErrNotHeld)
	must(t, rw.Unlock()) // after it, the server has had all earlier requests
	testserver.WaitChildren(t, dir, 0)
}
