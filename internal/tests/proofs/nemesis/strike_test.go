//go:build linux

package nemesis

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// kinds are the kinds of strike. Each function begins a strike and returns the function that ends it. It
// does nothing to a server or worker that another strike has already struck. A killed server is
// started again, and a killed worker gets another process.
var kinds = map[string]func(*site, strike) (end func() error){
	"kill server":         func(s *site, k strike) func() error { return s.killServer(k.Server) },
	"pause server":        func(s *site, k strike) func() error { return s.pauseServer(k.Server) },
	"kill leader":         func(s *site, k strike) func() error { return s.killServer(s.leader(k)) },
	"pause leader":        func(s *site, k strike) func() error { return s.pauseServer(s.leader(k)) },
	"cut leader off":      func(s *site, k strike) func() error { return s.isolate(s.leader(k)) },
	"cut server off":      func(s *site, k strike) func() error { return s.isolate(k.Server) },
	"cut servers apart":   func(s *site, k strike) func() error { return s.cutServers(k.Server, k.Peer) },
	"kill worker":         func(s *site, k strike) func() error { return s.killWorker(s.worker(k)) },
	"pause worker":        func(s *site, k strike) func() error { return s.pauseWorker(s.worker(k)) },
	"corner holder":       func(s *site, k strike) func() error { return s.corner(s.holder(), k) },
	"pause holder":        func(s *site, k strike) func() error { return s.pauseWorker(s.holder()) },
	"cut holder off":      func(s *site, k strike) func() error { return s.cutWorker(s.holder(), k.Direction, 0, 1, 2) },
	"cut worker off":      func(s *site, k strike) func() error { return s.cutWorker(s.worker(k), k.Direction, 0, 1, 2) },
	"cut worker briefly":  func(s *site, k strike) func() error { return s.cutWorker(s.worker(k), k.Direction, 0, 1, 2) },
	"cut one way off":     func(s *site, k strike) func() error { return s.cutWorker(s.worker(k), k.Direction, k.Server) },
	"cut two ways off":    func(s *site, k strike) func() error { return s.cutWorker(s.worker(k), k.Direction, k.Server, k.Peer) },
	"refuse worker":       func(s *site, k strike) func() error { return s.refuse(s.worker(k), k.Server, k.Peer) },
	"disconnect worker":   func(s *site, k strike) func() error { return s.disconnect(s.worker(k)) },
	"disconnect everyone": func(s *site, k strike) func() error { return s.disconnect(0, 1, 2, 3, 4) },
}

func kindNames() []string { return slices.Sorted(maps.Keys(kinds)) }

func nothing() error { return nil }

// leader returns the leader, or the server that the strike names if there is no leader.
func (s *site) leader(k strike) int {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	if i, err := s.ensemble.Leader(ctx); err == nil {
		return i
	}
	return k.Server
}

// holder returns the worker that has one of the locks and keeps it for long: the first that
// says so, and if none does for a time, the one that was seen under the first lock last.
func (s *site) holder() int {
	select {
	case worker := <-s.entered:
		return worker
	case <-time.After(s.timeout):
		return s.targets[0].register.latest()
	}
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
	for j := range servers {
		if j != i {
			s.note(s.ensemble.Partition(i, j))
		}
	}
	return s.healServers
}

func (s *site) cutServers(i, j int) func() error {
	s.note(s.ensemble.Partition(i, j))
	return s.healServers
}

func (s *site) healServers() error {
	s.ensemble.HealPartitions()
	return nil
}

func (s *site) killWorker(i int) func() error {
	s.crew.kill(i)
	return func() error { return s.crew.start(i) }
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

// corner leaves a worker one server that does not lead, and then cuts that off from the others.
// It answers for a while, and the leader, which hears nothing of the worker any more, ends the
// session.
func (s *site) corner(i int, k strike) func() error {
	last := k.Server
	if last == s.leader(k) {
		last = k.Peer
	}
	for j := range servers {
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
	before := p.Count(all)
	late := time.After(s.timeout / 4)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for p.Count(all) == before {
		select {
		case <-look.C:
		case <-late:
			return
		}
	}
}

func all(zktest.Request) bool { return true }

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

// attack runs a round: begins and ends its strikes in time, one after another.
func (s *site) attack(r round) {
	type act struct {
		at time.Duration
		do func()
	}
	var acts []act
	ends := make([]func() error, len(r))
	for i, k := range r {
		acts = append(acts,
			act{k.At, func() { ends[i] = kinds[k.Kind](s, k) }},
			act{k.At + k.For, func() { s.note(ends[i]()) }})
	}
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	for _, g := range s.targets {
		g.register.setAttack(true)
		defer g.register.setAttack(false)
	}
	began := now()
	for _, a := range acts {
		<-time.After(a.at - since(began)) // the schedule is one of moments, whatever happens
		a.do()
	}
}
