package locktest

import (
	"context"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// An owner that holds a lock enters it again, with one node, and gives it up by the last of as many Unlocks.
func owner(w *world) {
	if !w.subject.Reentrant {
		return
	}
	p, rival := w.process(), w.rival()
	ctx := queue.WithOwner(w.Context())
	w.Must(p.lock.Lock(ctx))
	w.Pass(time.Second) // it watches its node by now
	w.ResetRequests()
	w.Must(p.lock.Lock(ctx))
	got, err := p.lock.TryLock(ctx)
	if !got || err != nil {
		w.Errorf("TryLock again: %v, %v", got, err)
	}
	expect.Requests(w.T, "to enter again", w.Server, of(p.session()), 0)
	inner := false
	w.Want("Do", p.lock.Do(ctx, func(ctx context.Context) error {
		return p.lock.Do(ctx, func(context.Context) error {
			inner = true
			return nil
		})
	}), nil)
	if !inner {
		w.Error("the function of the inner Do was not called")
	}
	w.wantNodes("one owner", w.subject.Nodes)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	w.Want("Lock with a context that has ended", p.lock.Lock(ended), context.Canceled)
	if w.subject.Holders == 1 {
		soon, cancel := context.WithTimeout(ctx, time.Second)
		w.Want("Acquire, which does not look at owners", expect.Err(p.lock.Acquire(soon)), context.DeadlineExceeded)
		cancel()
		for who, other := range map[string]context.Context{"another owner": queue.WithOwner(ctx), "no owner": w.Context()} {
			soon, cancel := context.WithTimeout(other, time.Second)
			w.Want("Lock of "+who, p.lock.Lock(soon), context.DeadlineExceeded)
			cancel()
		}
		got, err := w.object(p.m).lock.TryLock(ctx)
		if got || err != nil {
			w.Errorf("TryLock of another object by the owner: %v, %v", got, err)
		}
	}
	next := rival.waits(w.Context(), rival.ways()[0])[0]
	for range 3 {
		w.Pass(time.Second)
		if _, err, returned := next.now(); returned {
			w.Fatalf("a rival's acquisition returns %v before the last Unlock", err)
		}
		if !p.lock.Held() {
			w.Error("not held before the last Unlock")
		}
		w.Want("Unlock", p.lock.Unlock(), nil)
	}
	p.notHeld()
	h, err := next.wait()
	w.Must(err)
	w.Want("the rival's release", h.end(), nil)
	w.Want("Do", p.lock.Do(ctx, func(ctx context.Context) error {
		w.Want("Lock inside", p.lock.Lock(ctx), nil)
		w.Want("its Unlock", p.lock.Unlock(), nil)
		p.notHeld()
		return ctx.Err()
	}), nil)
	w.usable(p)
}

// An owner does not enter a lost lock again. Each of its Unlocks tells of the loss.
func ownerOfLost(w *world) {
	if !w.subject.Reentrant {
		return
	}
	p := w.process()
	ctx := queue.WithOwner(w.Context())
	w.Must(p.lock.Lock(ctx))
	w.Must(p.lock.Lock(ctx))
	p.Lose(p.m)
	w.Want("Lock of a lost lock", p.lock.Lock(ctx), session.ErrLost)
	w.Want("TryLock of a lost lock", expect.Err(p.lock.TryLock(ctx)), session.ErrLost)
	w.Want("Do of a lost lock", p.lock.Do(ctx, func(context.Context) error {
		w.Error("the function of a Do is called although the lock was lost")
		return nil
	}), session.ErrLost)
	w.Want("Unlock of a lost lock", p.lock.Unlock(), session.ErrLost)
	w.Want("Lock between the Unlocks", p.lock.Lock(ctx), session.ErrLost)
	w.Want("Unlock of a lost lock", p.lock.Unlock(), session.ErrLost)
	p.notHeld()
	w.Want("Lock after that", p.lock.Lock(ctx), nil)
	w.Want("Unlock after that", p.lock.Unlock(), nil)
	w.gone("in the end", 0)
}

// Without an owner each Lock takes a hold of its own, and waits if there is none left. So does each Lock of an owner if
// the lock is not re-entrant.
func noOwner(w *world) {
	p := w.process()
	contexts := []context.Context{w.Context()}
	if !w.subject.Reentrant {
		contexts = append(contexts, queue.WithOwner(w.Context()))
	}
	for _, ctx := range contexts {
		most := w.subject.Holders
		if most == 0 {
			most = 5
		}
		for range most {
			w.Must(p.lock.Lock(ctx))
		}
		if w.subject.Holders > 0 {
			soon, cancel := context.WithTimeout(ctx, time.Second)
			w.Want("one Lock more", p.lock.Lock(soon), context.DeadlineExceeded)
			cancel()
		}
		for range most {
			w.Want("Unlock", p.lock.Unlock(), nil)
		}
		p.notHeld()
		w.gone("in the end", 0)
	}
}

// Of several holds of an object, Unlock gives up the lost one first.
func unlockLostFirst(w *world) {
	if w.subject.Holders == 1 || w.subject.SharesPlace {
		return
	}
	p := w.process()
	w.Must(p.lock.Lock(w.Context()))
	w.Must(p.lock.Lock(w.Context()))
	w.Pass(time.Second)
	w.Remove(w.nodes()[1])
	w.Pass(time.Second)
	w.Want("Unlock", p.lock.Unlock(), session.ErrLost)
	if n := len(w.nodes()); n != 1 || !p.lock.Held() {
		w.Errorf("%d nodes after the Unlock of the lost hold, held %v", n, p.lock.Held())
	}
	w.Want("Unlock", p.lock.Unlock(), nil)
	p.notHeld()
	w.usable(p)
}
