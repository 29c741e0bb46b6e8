package quorum

import (
	"context"
	"errors"
	"time"
)

// ErrClosed says that the ensemble is closed.
var ErrClosed = errors.New("zktest: server is closed")

// A command is a function that the run loop calls.
type command struct {
	do   func(*State)
	over chan struct{} // closed after do and all events that were then due
}

// Run is the loop that owns the state. It returns after [State.Close]. Events that are due run before
// input that arrives at the same time, so that a test in a bubble has the same outcome each time.
func (st *State) Run() {
	alarm := time.NewTimer(time.Hour) // not 0, which is due at once: see .ci/race
	alarm.Stop()                      // until an event is planned
	defer alarm.Stop()
	var set time.Time
	for {
		st.agenda.runDue()
		if at, ok := st.agenda.next(); ok && !at.Equal(set) {
			alarm.Reset(time.Until(at))
			set = at
		}
		select {
		case in := <-st.inbox:
			st.agenda.runDue()
			st.handle(in)
		case c := <-st.commands:
			st.agenda.runDue()
			c.do(st)
			st.agenda.runDue()
			close(c.over)
		case <-alarm.C:
			set = time.Time{}
		case <-st.done:
			return
		}
	}
}

// Do has the run loop call f, and waits until f and all events that are then due have run. It returns
// [ErrClosed] after [State.Close], and the cause of ctx's end if ctx ends before f is called.
func (st *State) Do(ctx context.Context, f func(*State)) error {
	c := command{do: f, over: make(chan struct{})}
	select {
	case st.commands <- c:
		<-c.over
		return nil
	case <-st.done:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// handle processes a frame, or the end of a client's frames. If the server stands still, it does so when
// the server continues.
func (st *State) handle(in input) {
	p := in.from
	switch {
	case p.gone:
	case p.at.held:
		p.at.overdue.inputs = append(p.at.overdue.inputs, func() { p.receive(in.frame) })
	default:
		p.receive(in.frame)
	}
}

// Close ends [State.Run].
func (st *State) Close() { close(st.done) }

// after has the run loop call f after d. If d is 0, the loop first finishes the present event.
func (st *State) after(d time.Duration, f func()) { st.agenda.add(time.Now().Add(d), f) }
