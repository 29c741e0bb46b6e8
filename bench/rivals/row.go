package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// row is one measurement over one network.
type row struct {
	key     string // for -rows
	title   string
	net     network
	plan    plan
	try     bool // it wants a TryLock
	goOnly  bool // it is for turnstile and go-zookeeper
	hold    time.Duration
	limit   kind // what no lock can do without; "": nothing that could be measured alone
	width   int  // of the limit: how many requests at once
	warm    int  // cycles before anything counts; 0: none, and a new team in each round
	cycles  int  // in a round, at least
	rounds  int  // at most; 0: as many as the others
	metrics []metric
	measure func(context.Context, *scene) ([]float64, error)
}

// metric is a number that a row gives.
type metric struct {
	name string
	unit unit
}

// scene is a row under way for one rival.
type scene struct {
	row
	team  team
	rival rival
	plan  plan
	stage *stage
	span  time.Duration // of a round, about
}

// perWorker returns how many cycles each worker makes for so many cycles in all.
func (s *scene) perWorker(cycles int) int { return max(1, cycles/s.plan.workers) }

func (s *scene) run(ctx context.Context) (outcome, error) {
	return s.team.Cycles(ctx, s.perWorker(s.cycles), s.hold)
}

// latency is how long an uncontended lock takes.
func latency(ctx context.Context, s *scene) ([]float64, error) {
	o, err := s.run(ctx)
	return []float64{quantile(o.cycles, 0.5), quantile(o.cycles, 0.99)}, err
}

// rate is how many cycles there are in a second.
func rate(ctx context.Context, s *scene) ([]float64, error) {
	o, err := s.run(ctx)
	return []float64{o.rate()}, err
}

// lasting is rate once all is as it was in the round before. Places that were kept then may have expired
// while other rivals were measured, and are taken again first. And because a place that is kept is so much
// faster than one that is taken, the number of cycles has to be found anew.
func lasting(ctx context.Context, s *scene) ([]float64, error) {
	if _, err := s.run(ctx); err != nil {
		return nil, err
	}
	for n := s.cycles; ; n *= 2 {
		o, err := s.team.Cycles(ctx, s.perWorker(n), s.hold)
		if err != nil || o.elapsed >= s.span/2 {
			return []float64{o.rate()}, err
		}
	}
}

// gap is the time from a release to the next holder. The limit has none: a write takes as
// long as its cycle.
func gap(ctx context.Context, s *scene) ([]float64, error) {
	o, err := s.run(ctx)
	if s.rival.Name() == limitName {
		o.gaps = o.cycles
	}
	return []float64{quantile(o.gaps, 0.5), quantile(o.gaps, 0.99)}, err
}

// tries is how long it takes to find a lock held.
func tries(ctx context.Context, s *scene) ([]float64, error) {
	if err := s.team.Hold(ctx); err != nil {
		return nil, err
	}
	o, err := s.team.Try(ctx, s.cycles)
	if err != nil {
		return nil, err
	}
	return []float64{quantile(o.cycles, 0.5)}, s.team.Drop(ctx)
}

// requests counts the requests of an uncontended lock, by their cost on the server.
func requests(ctx context.Context, s *scene) ([]float64, error) {
	s.stage.requests.ResetRequests()
	o, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	var writes, listings, other float64
	for _, r := range s.stage.requests.Requests() {
		switch r.Op {
		case zktest.OpPing:
		case zktest.OpCreate, zktest.OpCreate2, zktest.OpCreateContainer, zktest.OpDelete, zktest.OpSetData, zktest.OpMulti:
			writes++
		case zktest.OpGetChildren, zktest.OpGetChildren2:
			listings++
		default:
			other++
		}
	}
	n := float64(len(o.cycles))
	return []float64{writes / n, listings / n, other / n}, nil
}

// drain is how long a queue takes to run dry, and what that costs.
func drain(ctx context.Context, s *scene) ([]float64, error) {
	if err := s.line(ctx); err != nil {
		return nil, err
	}
	relay := s.stage.bytes[s.plan.servers]
	s.stage.requests.ResetRequests()
	before := relay.bytes.Load()
	o, err := s.team.Drain(ctx)
	if err != nil {
		return nil, err
	}
	n := float64(len(o.cycles))
	asked := math.NaN() // of etcd's requests nobody here knows
	if s.rival.Name() != etcdName {
		all := s.stage.requests
		asked = float64(all.Count(zktest.Any())-all.Count(zktest.Any(zktest.OpPing))) / n
	}
	return []float64{o.elapsed.Seconds(), asked, float64(relay.bytes.Load()-before) / n}, nil
}

// line has the first worker hold the lock and all others wait for it.
func (s *scene) line(ctx context.Context) error {
	if err := s.team.Hold(ctx); err != nil {
		return err
	}
	if err := s.team.Queue(ctx); err != nil {
		return err
	}
	return s.settled(ctx)
}

// settled waits until all workers are in the queue, and for some more polls, so that their watches are
// set too.
func (s *scene) settled(ctx context.Context) error {
	const every, quiet = 50 * time.Millisecond, 10
	var last int64
	for same := 0; same < quiet; same++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
		n, err := s.rival.Contenders(ctx, s.plan.path)
		if err != nil {
			return err
		}
		var now int64
		if r := s.stage.bytes[s.plan.servers]; r != nil {
			now = r.bytes.Load()
		}
		if n < s.plan.contenders() || now != last {
			same = 0
		}
		last = now
	}
	return nil
}

// processorTime is how much processor time of the client an uncontended lock takes.
func processorTime(ctx context.Context, s *scene) ([]float64, error) {
	before, err := s.team.Processor(ctx)
	if err != nil {
		return nil, err
	}
	o, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	after, err := s.team.Processor(ctx)
	return []float64{(after - before).Seconds() / float64(len(o.cycles))}, err
}

// memoryHeld is the memory of a held lock, and memoryWaiting that of a waiter.
func memoryHeld(ctx context.Context, s *scene) ([]float64, error) {
	return s.memory(ctx, s.team.HoldAll, s.team.DropAll)
}

func memoryWaiting(ctx context.Context, s *scene) ([]float64, error) {
	return s.memory(ctx, s.line, func(ctx context.Context) error {
		_, err := s.team.Drain(ctx)
		return err
	})
}

func (s *scene) memory(ctx context.Context, begin, end func(context.Context) error) ([]float64, error) {
	before, err := s.team.Memory(ctx)
	if err != nil {
		return nil, err
	}
	if err := begin(ctx); err != nil {
		return nil, err
	}
	after, err := s.team.Memory(ctx)
	if err != nil {
		return nil, err
	}
	return []float64{(float64(after) - float64(before)) / float64(s.plan.workers)}, end(ctx)
}

// quantile is the value below which the fraction q of all are, in seconds.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Seconds()
}

// String is how a row is called in errors and on the way.
func (r row) String() string { return fmt.Sprintf("%s, %s", r.title, r.net) }
