package place

import (
	"cmp"
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
)

// run goes on until the place is granted, has to wait, or was left. After Waits the caller calls block, and then run
// again. After Renews the place stands too. err says why it was left. If a policy of the user panics or ends the
// goroutine, the place is left as well.
func (a *attempt) run(ctx context.Context) (out decide.Outcome, err error) {
	out = decide.GoesOn
	defer func() {
		if out == decide.GoesOn { // cut short
			a.step(decide.Quit)
			a.leave(ctx, ErrCut)
		}
	}()
	in, err := a.enter(ctx)
	for {
		if err != nil {
			in, err = a.endOf(ctx, err)
		}
		move := a.must(in)
		if move.Out != decide.GoesOn {
			return a.settle(ctx, move, err)
		}
		in, err = a.carryOut(a.within(ctx), move.Do)
	}
}

// enter creates the node, unless that has been done.
func (a *attempt) enter(ctx context.Context) (decide.Input, error) {
	if a.is() == decide.Outside {
		if err := (entrants{{a, ctx}}).enter(ctx); err != nil {
			return decide.Quit, err
		}
	}
	return decide.Run, a.failed
}

// carryOut does what follows an input, and returns the next input.
func (a *attempt) carryOut(ctx context.Context, do decide.Effect) (decide.Input, error) {
	switch do {
	case decide.Judge:
		return a.judge(ctx)
	case decide.Watch:
		return a.startWait(ctx)
	case decide.Look:
		return a.look(ctx)
	case decide.List:
		return a.listAgain(ctx)
	default:
		panic("place: an attempt that has entered creates nothing")
	}
}

// endOf returns the input for an error, and the error to report.
func (a *attempt) endOf(ctx context.Context, err error) (decide.Input, error) {
	switch {
	case errors.Is(err, errDeleted):
		return decide.Lost, err
	case errors.Is(err, core.ErrLost) && a.entry.beside == nil:
		return decide.Lost, err
	case a.limited != nil && a.limited.Err() != nil && errors.Is(err, a.limited.Err()):
		return decide.Quit, cmp.Or(ctx.Err(), ErrBusy) // both may have ended, in any order
	}
	return decide.Quit, err
}

// settle follows the last move for now.
func (a *attempt) settle(ctx context.Context, move decide.Move, err error) (decide.Outcome, error) {
	if move.Out == decide.Waits {
		return move.Out, nil
	}
	if a.limited != nil {
		a.end()
	}
	if move.Do == decide.Remove {
		a.leave(ctx, err)
	}
	if move.Out == decide.Granted {
		a.view = nil
	}
	return move.Out, err
}

// judge decides by the listing.
func (a *attempt) judge(ctx context.Context) (decide.Input, error) {
	ahead, err := a.decide(ctx, a.names)
	switch {
	case err != nil:
		return decide.Quit, err
	case ahead.MayGo():
		if err := a.hear(ctx); err != nil {
			return decide.Quit, err
		}
		return a.free()
	case a.entry.Try && a.isBusy(ahead):
		return decide.Quit, ErrBusy
	case a.entry.Try && a.limited == nil:
		a.limited, a.end = context.WithTimeout(ctx, keeperPatience)
	}
	a.ahead = ahead
	return decide.Ahead, nil
}

// listAgain lists once more.
func (a *attempt) listAgain(ctx context.Context) (_ decide.Input, err error) {
	a.names, err = a.list(ctx)
	return decide.Listed, err
}
