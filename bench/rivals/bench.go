package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// result has the values of one row: by rival, by metric, and one for each round.
type result struct {
	row    row
	values map[string][][]float64
}

// patience bounds one measurement of one rival. The burst of zk.Lock takes minutes on a busy machine.
const patience = 10 * time.Minute

// bench measures rows of rivals.
type bench struct {
	stage  *stage
	rivals []rival
	rounds int
	span   time.Duration // of a round, about
	log    *slog.Logger
}

// paths makes a new path for each team, so that no team finds nodes of another.
var paths atomic.Int64

// planFor is a rival's plan for a row.
func (b *bench) planFor(r row, v rival) plan {
	p := r.plan
	p.servers = b.stage.zk[r.net]
	if v.Name() == etcdName {
		p.servers = b.stage.etcd[r.net]
	}
	ours := v.Name() == turnstileName || v.Name() == beforeName
	p.lazy = p.lazy && ours
	p.async = p.async && ours
	if v.Name() == limitName {
		p.kind, p.sessions, p.workers, p.apart = r.limit, 1, r.width, false
	}
	p.path = fmt.Sprintf("/bench/%s-%d", strings.ReplaceAll(v.Name(), ".", "-"), paths.Add(1))
	return p
}

// warmUp runs all rivals for a while over loopback. Above all, the JVM's compilers have to see each
// kind of lock.
func (b *bench) warmUp(ctx context.Context, cycles int) error {
	for _, k := range []kind{mutex, rw, semaphore} {
		r := row{title: "warm-up of " + string(k), net: loopback, plan: plan{kind: k, sessions: 4, workers: 4, leases: 2, every: 10},
			warm: cycles, cycles: 4, limit: twoWrites, width: 1, metrics: rates, measure: rate, rounds: 1}
		if _, err := b.run(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// run measures one row: every rival in turn, round by round, because the machine's speed drifts.
func (b *bench) run(ctx context.Context, r row) (result, error) {
	res := result{row: r, values: map[string][][]float64{}}
	var scenes []*scene
	for _, v := range b.rivals {
		if v.Lacks(r) == "" {
			scenes = append(scenes, &scene{row: r, rival: v, plan: b.planFor(r, v), stage: b.stage, span: b.span})
			res.values[v.Name()] = make([][]float64, len(r.metrics))
		}
	}
	err := b.play(ctx, r, scenes, &res)
	for _, s := range scenes {
		err = errors.Join(err, s.close())
	}
	if err == nil {
		b.log.Info(r.String(), "medians", res.short())
	}
	return res, err
}

func (b *bench) play(ctx context.Context, r row, scenes []*scene, res *result) error {
	rounds := b.rounds
	if r.rounds > 0 {
		rounds = min(rounds, r.rounds)
	}
	for i := range rounds {
		// The rivals take turns in going first, because one may leave the machine busy for the next.
		for k := range scenes {
			s := scenes[(i+k)%len(scenes)]
			got, err := b.round(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", r, s.rival.Name(), err)
			}
			for i, x := range got {
				all := res.values[s.rival.Name()]
				all[i] = append(all[i], x)
			}
		}
	}
	return nil
}

// round measures one rival once.
func (b *bench) round(ctx context.Context, s *scene) ([]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if s.warm == 0 {
		// What one round has left must not count for the next.
		if err := s.close(); err != nil {
			return nil, err
		}
		s.plan = b.planFor(s.row, s.rival)
	}
	if s.team == nil {
		if err := s.open(ctx); err != nil {
			return nil, err
		}
	}
	return s.measure(ctx, s)
}

// open makes the team and warms it up. The speed of that decides the number of cycles of a round, so
// that rounds of fast and of slow rivals take about the same time.
func (s *scene) open(ctx context.Context) (err error) {
	if s.team, err = s.rival.Open(ctx, s.plan); err != nil || s.warm == 0 {
		return err
	}
	o, err := s.team.Cycles(ctx, s.perWorker(s.warm), s.hold)
	if err == nil && s.rounds != 1 {
		s.cycles = max(s.cycles, int(o.rate()*s.span.Seconds()))
	}
	return err
}

func (s *scene) close() error {
	if s.team == nil {
		return nil
	}
	t := s.team
	s.team = nil
	return t.Close()
}

// median ignores what is not a number.
func median(xs []float64) float64 {
	xs = slices.DeleteFunc(slices.Sorted(slices.Values(xs)), math.IsNaN)
	if len(xs) == 0 {
		return math.NaN()
	}
	return xs[len(xs)/2]
}

// better returns how many times as good as a rival we are, by metric i: the median of the ratios
// of all rounds.
func (r result) better(name string, i int) float64 {
	us, them := r.series(turnstileName, i), r.series(name, i)
	ratios := make([]float64, min(len(us), len(them)))
	for k := range ratios {
		ratios[k] = them[k] / us[k]
		if r.row.metrics[i].unit.more {
			ratios[k] = us[k] / them[k]
		}
	}
	return median(ratios)
}

func (r result) series(name string, i int) []float64 {
	if all, ok := r.values[name]; ok {
		return all[i]
	}
	return nil
}

// short is the first metric's medians.
func (r result) short() string {
	var words []string
	for _, name := range names {
		if xs := r.series(name, 0); xs != nil {
			words = append(words, name+" "+r.row.metrics[0].unit.format(median(xs)))
		}
	}
	return strings.Join(words, ", ")
}
