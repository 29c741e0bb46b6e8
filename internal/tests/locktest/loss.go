package locktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// losses are the ways to lose a lock that is held.
var losses = map[string]func(*process){
	"session": func(p *process) { p.Lose(p.m) },
	"node":    func(p *process) { p.Remove(p.nodes()[0]) },
	"node after a reconnect": func(p *process) {
		p.Disconnect()
		p.Pass(time.Second)
		p.Remove(p.nodes()[0])
	},
	"node without a connection": func(p *process) {
		p.Refuse(true)
		p.Disconnect()
		p.Remove(p.nodes()[0])
		p.Refuse(false)
		p.Pass(time.Second)
	},
	"network": func(p *process) {
		p.Blackhole(zktest.Both)
		p.Pass(timeout)
		p.Heal()
	},
}

// The holder of a lost lock hears of the loss, and its release says so. By then others can have the lock, and the release
// takes nothing from them.
func loseHold(t *testing.T, s Subject) {
	for what, lose := range losses {
		t.Run(what, func(t *testing.T) {
			eachCall(t, s, func(w *world, c call) {
				p := w.process()
				h := p.take(c.of(p))
				w.Pass(time.Second) // it watches its node by now
				lose(p)
				synctest.Wait()
				if h.done != nil && !expect.Closed(h.done) { // before a look at the rest, which can be what finds the loss
					w.Error("Done is open after the loss")
				}
				w.Want("the lost hold", h.err(), session.ErrLost)
				if h.ctx != nil {
					w.Want("context of the hold", h.ctx.Err(), context.Canceled)
					w.Want("cause of its end", context.Cause(h.ctx), session.ErrLost)
				}
				if strings.HasPrefix(what, "node") && s.Nodes > 1 { // its other locks are not lost
					w.wantNoCancel(h, session.ErrLost)
					w.usable(p)
					return
				}
				w.gone("after the loss", 0)
				rival := w.rival()
				next := rival.take(rival.ways()[0])
				w.wantNoCancel(h, session.ErrLost)
				synctest.Wait()
				w.Want("the next hold", next.err(), nil)
				w.Want("its release", next.end(), nil)
				w.usable(p, rival)
			})
		})
	}
}

// A goroutine that has lost the lock and hangs keeps out the other goroutines of its object, which have no node in the
// meantime, and no other process.
func lostSlot(t *testing.T, s Subject) {
	if !s.Slot {
		return
	}
	for what, lose := range losses {
		if strings.HasPrefix(what, "node") && s.Nodes > 1 {
			continue // its other locks are not lost
		}
		t.Run(what, func(t *testing.T) {
			inBubble(func(w *world) {
				p := w.process()
				lock := p.waiting()[1]
				w.Must(p.lock.Lock(w.Context()))
				ctx, cancel := context.WithCancel(w.Context())
				calls := p.waits(w.Context(), lock) // this one begins before the loss
				lose(p)
				w.Pass(time.Second) // less than a place is kept for
				if n := len(w.nodes()); n != 0 && what != "network" {
					w.Errorf("%d nodes of a process that cannot use the lock", n)
				}
				w.Pass(time.Minute)
				got, err := p.lock.TryLock(w.Context())
				if got || err != nil {
					w.Errorf("TryLock before the Unlock of a lost lock: %v, %v", got, err)
				}
				w.gone("beside the lost hold", 0)
				rival := w.rival()
				next := rival.take(rival.ways()[0])
				calls = append(calls, p.waits(w.Context(), lock)...)
				quits := p.waits(ctx, lock)[0]
				w.wantNodes("of the rival", s.Nodes)
				cancel()
				_, err = quits.wait()
				w.Want("the call that is cancelled", err, context.Canceled)
				w.Pass(time.Minute)
				w.Want("Unlock of a lost lock", p.lock.Unlock(), session.ErrLost)
				w.Want("a second one", p.lock.Unlock(), zklock.ErrNotHeld)
				w.Pass(time.Second)
				w.Want("the rival's hold", next.err(), nil)
				w.Want("its release", next.end(), nil)
				w.Pass(time.Second)
				for range calls {
					w.Want("Unlock", p.lock.Unlock(), nil)
					w.Pass(time.Second)
				}
				for _, c := range calls {
					if _, _, returned := c.now(); !returned {
						w.Fatal("a Lock waits for ever")
					}
				}
				w.usable(p, rival)
				w.Must(p.lock.Lock(w.Context()))
				lose(p)
				w.Pass(time.Minute)
				last := p.waits(w.Context(), lock)[0]
				w.Want("Close", p.m.Close(), nil)
				synctest.Wait()
				if _, err, returned := last.now(); !returned {
					w.Error("a Lock beside a lost hold waits after Close")
				} else {
					w.Want("a Lock beside a lost hold", err, session.ErrClosed)
				}
				w.Want("Unlock of a lost lock after Close", p.lock.Unlock(), session.ErrLost)
			})(t, s)
		})
	}
}

// wantNoCancel ends a hold. If a function ends with the error of its context, that of the Do has the reason, and what else
// has failed, and does not look like the end of the caller's context.
func (w *world) wantNoCancel(h *hold, reason error) {
	w.Helper()
	failure := errors.New("failure of the function")
	if h.finish != nil {
		h.finish <- errors.Join(h.ctx.Err(), failure)
	}
	err := h.end()
	w.Want("release", err, reason)
	if h.finish != nil {
		w.Want("release", err, failure)
	}
	if errors.Is(err, context.Canceled) {
		w.Errorf("the error %v matches that of a context, and the caller's has not ended", err)
	}
	if !w.subject.Campaigns && strings.Contains(err.Error(), "\n") { // an election keeps what its function returns
		w.Errorf("the error %q has several lines", err)
	}
}
