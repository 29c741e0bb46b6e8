package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/leastleft"
)

// vitals are what has become of a session.
type vitals struct {
	lost int64         // sessions
	left time.Duration // of the lease, at worst; less than 0: nobody knows
}

// watched is a connection that says what becomes of its session.
type watched interface {
	// Watch watches until stop is called.
	Watch(ctx context.Context) (stop func() vitals, err error)
}

func (o ours) Watch(ctx context.Context) (func() vitals, error) {
	s, err := o.m.Session(ctx)
	if err != nil {
		return nil, err
	}
	before, left := o.lost.Load(), leastleft.Watch(s)
	return func() vitals { return vitals{o.lost.Load() - before, max(0, left())} }, nil
}

// Watch counts sessions only. A zk.Conn does not know how long its session lasts.
func (p plain) Watch(context.Context) (func() vitals, error) {
	before := p.lost.Load()
	return func() vitals { return vitals{p.lost.Load() - before, -1} }, nil
}

// Watch watches the first session.
func (t *localTeam) Watch(ctx context.Context) (func() vitals, error) {
	w, ok := t.connections[0].(watched)
	if !ok {
		return nil, fmt.Errorf("a %T is not watched", t.connections[0])
	}
	return w.Watch(ctx)
}

// burst is how long it takes until all workers, which begin at once, have had the lock, and what that does to their
// session. A lock that fails because its session was lost leaves the time without a number.
func burst(ctx context.Context, s *scene) ([]float64, error) {
	w, ok := s.team.(watched)
	if !ok {
		return nil, fmt.Errorf("a %T is not watched", s.team)
	}
	stop, err := w.Watch(ctx)
	if err != nil {
		return nil, err
	}
	o, err := s.team.Cycles(ctx, 1, 0)
	v := stop()
	took, left := o.elapsed.Seconds(), v.left.Seconds()
	if err != nil && v.lost > 0 {
		took, err = math.NaN(), nil
	}
	if left < 0 {
		left = math.NaN()
	}
	return []float64{took, float64(v.lost), left}, err
}
