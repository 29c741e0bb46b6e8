package room

import (
	"errors"
	"fmt"
	"slices"
)

// ErrTooManyNodes is that of package session.
var ErrTooManyNodes = errors.New("too many ephemeral nodes in one session")

// isOver reports whether a context has ended, of which it takes the channel: its error can take the mutexes
// of a session.
func isOver(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// ask sets the room aside if there is enough, and nobody waits. Otherwise the caller waits from now on: me
// has got. What needs no room does not wait.
func (a *Account) ask(me *asking) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch lacks := me.lacksLocked(Size{}); {
	case !lacks.fits(a.limit):
		return a.refusalLocked(me)
	case lacks == (Size{}), len(a.waiting) == 0 && a.used.plus(lacks).fits(a.limit):
		a.setAsideLocked(me)
		return nil
	}
	me.got, me.look = make(chan struct{}), make(chan struct{}, 1)
	a.waiting = append(a.waiting, me)
	return nil
}

// lacksLocked returns the room that the reservation lacks once it has got so much back.
func (me *asking) lacksLocked(back Size) Size {
	if me.v.ended {
		return Size{}
	}
	return me.need.beyond(me.v.free.plus(back))
}

func (a *Account) setAsideLocked(me *asking) {
	if me.v.ended {
		return
	}
	me.granted = me.lacksLocked(Size{})
	a.used = a.used.plus(me.granted)
	me.v.all, me.v.free = me.v.all.plus(me.granted), me.v.free.plus(me.granted)
	a.open[me.v] = struct{}{}
}

// judge returns nil if a caller that waits will get its room by what is on its way. It has places given up
// that are kept, all that are missing at once, and first what the caller has to yield. Others are judged only
// after it.
func (a *Account) judge(me *asking, yield *func()) error {
	a.judging.Lock()
	defer a.judging.Unlock()
	for some := true; ; {
		missing, spare := a.missing(me)
		switch {
		case missing == Size{}:
			return nil
		case *yield != nil:
			(*yield)()
			*yield = nil
		case some && spare != nil:
			some = spare(missing) // if there was none, the last one may have been given up just before, and is on its way
		default:
			return a.refuse(me)
		}
	}
}

// missing returns how much room a caller lacks after all that is on its way has come, and all that came
// before have what they need.
func (a *Account) missing(me *asking) (Size, func(Size) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.Index(a.waiting, me)
	if at < 0 {
		return Size{}, nil // it has its room
	}
	later := a.used.minus(a.leaving)
	for v := range a.open {
		if isOver(v.over) {
			later = later.minus(v.all) // its caller gives up: see End for what stays
			continue
		}
		later = later.minus(v.leaving.least(v.excessLocked()))
	}
	for _, one := range a.waiting[:at+1] {
		if one == me || !isOver(one.ended) {
			// The room of its nodes goes back to it, but for the excess.
			later = later.plus(one.lacksLocked(one.v.leaving.beyond(one.v.excessLocked())))
		}
	}
	return later.beyond(a.limit), a.spare
}

// refuse ends the wait of a caller, unless it has got its room by now.
func (a *Account) refuse(me *asking) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.dequeueLocked(me) {
		return nil
	}
	return a.refusalLocked(me)
}

func (a *Account) refusalLocked(me *asking) error {
	lacks := me.lacksLocked(Size{})
	if lacks.Nodes > a.limit.Nodes-a.used.Nodes {
		return fmt.Errorf("%w: %d of at most %d nodes (WithMaxNodes) are taken or spoken for, and %d more are wanted",
			ErrTooManyNodes, a.used.Nodes, a.limit.Nodes, lacks.Nodes)
	}
	return fmt.Errorf("%w: %d of at most %d bytes of paths (WithMaxNodeBytes) are taken or spoken for, and %d more are wanted",
		ErrTooManyNodes, a.used.Bytes, a.limit.Bytes, lacks.Bytes)
}

// withdraw ends the wait of a caller, whether it has got its room by now or not.
func (a *Account) withdraw(me *asking) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dequeueLocked(me)
	if !me.v.ended {
		a.used = a.used.minus(me.granted)
		me.v.all, me.v.free = me.v.all.minus(me.granted), me.v.free.minus(me.granted)
	}
	a.grantLocked()
}

func (a *Account) dequeueLocked(me *asking) bool {
	at := slices.Index(a.waiting, me)
	if at < 0 {
		return false
	}
	a.waiting = slices.Delete(a.waiting, at, at+1)
	return true
}

// grantLocked sets room aside for those that wait, in their order.
func (a *Account) grantLocked() {
	for len(a.waiting) > 0 {
		first := a.waiting[0]
		if !isOver(first.ended) {
			if !a.used.plus(first.lacksLocked(Size{})).fits(a.limit) {
				return
			}
			a.setAsideLocked(first)
			close(first.got)
		}
		a.waiting = slices.Delete(a.waiting, 0, 1)
	}
}

// lookAgainLocked has those that wait judged again, because less room is on its way than it was.
func (a *Account) lookAgainLocked() {
	for _, one := range a.waiting {
		select {
		case one.look <- struct{}{}:
		default:
		}
	}
}
