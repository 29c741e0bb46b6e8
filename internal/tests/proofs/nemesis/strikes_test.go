//go:build linux

package nemesis

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// leader returns the leader, or the server that the strike names if there is no leader.
func (s *site) leader(k strike) int {
	ctx, cancel := context.WithTimeout(s.Context(), s.timeout)
	defer cancel()
	if i, err := s.ensemble.Leader(ctx); err == nil {
		return i
	}
	return k.Server
}

// holder returns the worker that has one of the locks and keeps it for long: the first that
// says so, and if none does for a time, the one that was seen under the first lock last.
func (s *site) holder() (worker int) {
	select {
	case worker = <-s.desk.entered:
	case <-time.After(s.timeout):
		s.desk.do(func() { worker = s.desk.last })
	}
	return worker
}

// worker returns the worker that the strike means.
func (s *site) worker(k strike) int {
	if k.Worker == anyone {
		return s.holder()
	}
	return k.Worker
}

func (s *site) killServer(i int) func() error {
	s.note(s.ensemble.Kill(i))
	return func() error { return s.raise(i) }
}

// raise starts a server that is down, and resumes a paused one.
func (s *site) raise(i int) error {
	if err := s.ensemble.Resume(i); err == nil {
		return nil
	}
	return s.ensemble.Launch(i)
}

func (s *site) pauseServer(i int) func() error {
	if err := s.ensemble.Pause(i); err != nil {
		return nothing // it is down
	}
	return func() error { return s.raise(i) }
}

func (s *site) isolate(i int) func() error {
	for j := range voters {
		if j != i {
			s.links.Cut(i, j)
		}
	}
	return s.healServers
}

func (s *site) cutServers(i, j int) func() error {
	s.links.Cut(i, j)
	return s.healServers
}

func (s *site) healServers() error {
	s.links.Heal()
	return nil
}

// mortal returns a worker that may die: where something is counted, the first one lives on.
func (s *site) mortal(i int) int {
	if s.settles {
		return max(1, i)
	}
	return i
}

func (s *site) killWorker(i int) func() error {
	i = s.mortal(i)
	s.crew.kill(i)
	return s.rebirth(i)
}

// endWorker has a worker close its manager in the middle of its work.
func (s *site) endWorker(i int) func() error {
	i = s.mortal(i)
	s.crew.resume(i)
	s.crew.close(i)
	return s.rebirth(i)
}

// rebirth gives a worker another process, at once or when all is healed.
func (s *site) rebirth(i int) func() error {
	if s.settles {
		return nothing
	}
	return func() error { return s.start(i) }
}

func (s *site) pauseWorker(i int) func() error {
	s.crew.pause(i)
	return func() error {
		s.crew.resume(i)
		return nil
	}
}

func (s *site) cutWorker(i int, d zktest.Direction, from ...int) func() error {
	for _, j := range from {
		s.proxies[i][j].Blackhole(d)
	}
	return s.healWorker(i)
}

func (s *site) refuse(i int, from ...int) func() error {
	for _, j := range from {
		s.proxies[i][j].Refuse(true)
		s.proxies[i][j].Disconnect()
	}
	return s.healWorker(i)
}

func (s *site) slowWorker(i int) func() error {
	for _, p := range s.proxies[i] {
		p.Delay(s.timeout / 50)
	}
	return func() error {
		for _, p := range s.proxies[i] {
			p.Delay(0)
		}
		return nil
	}
}

// arm has a fault strike at the next request of a kind of a worker, or at its answer.
func (s *site) arm(i int, fault func(*zktest.Proxy, zktest.Match) *zktest.Fault, op zktest.Op) func() error {
	var armed []*zktest.Fault
	for _, p := range s.proxies[i] {
		armed = append(armed, fault(p, zktest.Any(op)))
	}
	return func() error {
		for _, f := range armed {
			f.Release()
		}
		return nil
	}
}

// corner leaves a worker one server that does not lead, and then cuts that off from the others.
// It answers for a while, and the leader, which hears nothing of the worker any more, ends the
// session.
func (s *site) corner(i int, k strike) func() error {
	last := k.Server
	if last == s.leader(k) {
		last = k.Peer
	}
	for j := range voters {
		if j != last {
			s.refuse(i, j)
		}
	}
	s.awaitArrival(s.proxies[i][last])
	healServers := s.isolate(last)
	return func() error {
		return errors.Join(healServers(), s.healWorker(i)())
	}
}

// awaitArrival waits until a worker has asked something through a proxy, or could have: one
// that is stopped, or is in its waits between dials, does not.
func (s *site) awaitArrival(p *zktest.Proxy) {
	all := func(zktest.Request) bool { return true }
	before := p.Count(all)
	eventually(s.timeout/4, func() bool { return p.Count(all) > before })
}

func (s *site) healWorker(i int) func() error {
	return func() error {
		for _, p := range s.proxies[i] {
			p.Heal()
		}
		return nil
	}
}

func (s *site) disconnect(who ...int) func() error {
	for _, i := range who {
		for _, p := range s.proxies[i] {
			p.Disconnect()
		}
	}
	return nothing
}

// strike begins and ends the strikes of a round in time, one after another.
func (s *site) strike(round []strike) {
	type act struct {
		at time.Duration
		do func()
	}
	var acts []act
	ends := make([]func() error, len(round))
	for i, k := range round {
		acts = append(acts,
			act{k.At, func() { ends[i] = kinds[k.Kind](s, k) }},
			act{k.At + k.For, func() { s.note(ends[i]()) }})
	}
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	s.tell("attack")
	defer s.tell("calm")
	began := time.Now()
	for _, a := range acts {
		pause(s.Context(), a.at-time.Since(began)) // the plan is one of moments, whatever happens
		a.do()
	}
	s.faults += len(round)
}

// round strikes, heals, and checks that every worker is served.
func (s *site) round(strikes []strike) {
	s.Helper()
	s.strike(strikes)
	s.heal()
	healed := now()
	var slowest time.Duration
	var stalled []string
	for i, took := range s.served(healed, s.stall()) {
		o := &s.results[i]
		if took < 0 {
			o.stalls++
			stalled = append(stalled, s.subjects[i].name)
			continue
		}
		o.served = append(o.served, took)
		slowest = max(slowest, took)
	}
	if len(stalled) > 0 || slowest > 2*s.timeout {
		s.tellWaiting(healed + int64(2*s.timeout))
	}
	s.Logf("%s: %v; everybody served after %v; not within %v: %v", s.name, strikes, slowest.Round(time.Millisecond), s.stall(), stalled)
}
