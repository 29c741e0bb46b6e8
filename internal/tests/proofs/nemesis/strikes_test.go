//go:build linux

package nemesis

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// strike is one fault of a round. It begins at At.
type strike struct {
	Kind      string
	Worker    int // anyone: the worker that holds the lock at that moment
	Server    int
	Peer      int // another server
	Direction zktest.Direction
	Op        zktest.Op
	At, For   time.Duration
}

const anyone = -1

// kinds are the kinds of strike. Each function begins a strike and returns the function that ends it. It
// does nothing to a server or worker that another strike has already struck. A killed server is
// started again, and a killed worker gets another process.
var kinds = map[string]func(*site, strike) (end func()){
	"kill server":          func(s *site, k strike) func() { return s.killServer(k.Server) },
	"pause server":         func(s *site, k strike) func() { return s.pauseServer(k.Server) },
	"kill leader":          func(s *site, k strike) func() { return s.killServer(s.leads(k)) },
	"pause leader":         func(s *site, k strike) func() { return s.pauseServer(s.leads(k)) },
	"cut leader off":       func(s *site, k strike) func() { return s.isolate(s.leads(k)) },
	"cut server off":       func(s *site, k strike) func() { return s.isolate(k.Server) },
	"cut servers apart":    func(s *site, k strike) func() { s.links.Cut(k.Server, k.Peer); return s.links.Heal },
	"corner holder":        (*site).corner,
	"kill worker":          func(s *site, k strike) func() { return s.endWorker(k, (*process).kill) },
	"end worker":           func(s *site, k strike) func() { return s.endWorker(k, (*process).end) },
	"pause worker":         func(s *site, k strike) func() { return s.pauseWorker(s.worker(k)) },
	"pause holder":         func(s *site, _ strike) func() { return s.pauseWorker(s.holder()) },
	"cut holder off":       func(s *site, k strike) func() { return s.cut(s.holder(), k.blackhole) },
	"cut worker off":       func(s *site, k strike) func() { return s.cut(s.worker(k), k.blackhole) },
	"cut worker briefly":   func(s *site, k strike) func() { return s.cut(s.worker(k), k.blackhole) },
	"cut one way off":      func(s *site, k strike) func() { return s.cut(s.worker(k), k.blackhole, k.Server) },
	"cut two ways off":     func(s *site, k strike) func() { return s.cut(s.worker(k), k.blackhole, k.Server, k.Peer) },
	"refuse worker":        func(s *site, k strike) func() { return s.cut(s.worker(k), refuse, k.Server, k.Peer) },
	"slow worker":          (*site).slowWorker,
	"disconnect worker":    func(s *site, k strike) func() { return s.disconnect(s.worker(k)) },
	"disconnect everyone":  func(s *site, _ strike) func() { return s.disconnect(everybody...) },
	"cut before a request": func(s *site, k strike) func() { return s.arm(k, (*zktest.Proxy).CutBefore) },
	"cut after a commit":   func(s *site, k strike) func() { return s.arm(k, (*zktest.Proxy).CutAfterCommit) },
	"hold a request":       func(s *site, k strike) func() { return s.arm(k, (*zktest.Proxy).HoldRequest) },
	"hold a reply":         func(s *site, k strike) func() { return s.arm(k, (*zktest.Proxy).HoldReply) },
}

// ops are the kinds of requests and events at which a fault can strike.
var ops = []zktest.Op{
	zktest.OpCreate, zktest.OpCreateContainer, zktest.OpDelete, zktest.OpGetData, zktest.OpSetWatches, zktest.OpGetChildren2,
	zktest.OpSync, zktest.OpPing, zktest.OpMulti, zktest.OpConnect, zktest.OpSASL, zktest.OpNotification,
}

// inAttack reports whether a kind of strike is one of attack. Those that are not cost no session and hardly a lock.
func inAttack(kind string) bool {
	return !strings.Contains(kind, " a ") && !strings.HasPrefix(kind, "slow")
}

// inSoak reports whether a kind of strike is one of soak: at no server.
func inSoak(kind string) bool {
	return !strings.Contains(kind, "server") && !strings.Contains(kind, "leader") && kind != "corner holder"
}

// plan draws one round after another, without end, the same from the same seed.
type plan struct {
	random  *rand.Rand
	timeout time.Duration // of sessions
	allowed func(kind string) bool
	unused  []string // each kind comes once before any comes again
}

// round has the faults before all is healed.
func (p *plan) round(most int) []strike {
	r := make([]strike, 1+p.random.IntN(most))
	for i := range r {
		r[i] = p.strike()
	}
	return r
}

func (p *plan) strike() strike {
	server := p.random.IntN(voters)
	worker := p.random.IntN(workers)
	if p.random.IntN(2) == 0 {
		worker = anyone
	}
	kind := p.kind()
	return strike{
		Kind:      kind,
		Worker:    worker,
		Server:    server,
		Peer:      (server + 1 + p.random.IntN(voters-1)) % voters,
		Direction: []zktest.Direction{zktest.ToServer, zktest.ToClient, zktest.Both}[p.random.IntN(3)],
		Op:        ops[p.random.IntN(len(ops))],
		At:        p.upTo(p.timeout),
		For:       p.duration(kind),
	}
}

func (p *plan) kind() string {
	if len(p.unused) == 0 {
		p.unused = slices.DeleteFunc(slices.Sorted(maps.Keys(kinds)), func(kind string) bool { return !p.allowed(kind) })
		p.random.Shuffle(len(p.unused), func(i, j int) { p.unused[i], p.unused[j] = p.unused[j], p.unused[i] })
	}
	k := p.unused[0]
	p.unused = p.unused[1:]
	return k
}

// duration draws a duration within a session's timeout, or beyond it. A fault that is over at once
// has none. A brief one is far below the timeout, so that the session is kept.
func (p *plan) duration(kind string) time.Duration {
	switch {
	case strings.HasPrefix(kind, "disconnect"):
		return 0
	case strings.HasSuffix(kind, "briefly"), strings.Contains(kind, " a "):
		return p.timeout/8 + p.upTo(p.timeout/2)
	case p.random.IntN(3) == 0:
		return p.timeout/10 + p.upTo(p.timeout)
	}
	return p.timeout*11/10 + p.upTo(p.timeout)
}

func (p *plan) upTo(d time.Duration) time.Duration { return time.Duration(p.random.Int64N(int64(d))) }

func nothing() {}

// leads returns the leader, or the server that the strike names if there is no leader.
func (s *site) leads(k strike) int {
	ctx, cancel := context.WithTimeout(s.Context(), s.timeout)
	defer cancel()
	if i, err := s.Leader(ctx); err == nil {
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

func (s *site) killServer(i int) func() {
	s.note(s.Kill(i))
	return func() { s.note(s.raise(i)) }
}

// raise starts a server that is down, and resumes a paused one.
func (s *site) raise(i int) error {
	if err := s.Resume(i); err == nil {
		return nil
	}
	return s.Launch(i)
}

func (s *site) pauseServer(i int) func() {
	if err := s.Pause(i); err != nil {
		return nothing // it is down
	}
	return func() { s.note(s.raise(i)) }
}

func (s *site) isolate(i int) func() {
	for j := range voters {
		if j != i {
			s.links.Cut(i, j)
		}
	}
	return s.links.Heal
}

// endWorker ends a process in the middle of its work. The worker gets another, at once or when all is healed. Where
// something is counted, the first worker lives on.
func (s *site) endWorker(k strike, end func(*process)) func() {
	i := s.worker(k)
	if s.settles {
		i = max(1, i)
	}
	s.process(i).resume()
	end(s.process(i))
	if s.settles {
		return nothing
	}
	return func() { s.start(i) }
}

func (s *site) pauseWorker(i int) func() {
	s.process(i).pause()
	return s.process(i).resume
}

// doors does something to the ways from a worker to some servers, or to all.
func (s *site) doors(i int, do func(*zktest.Proxy), to ...int) {
	for j, p := range s.proxies[i] {
		if len(to) == 0 || slices.Contains(to, j) {
			do(p)
		}
	}
}

// cut does so until all ways of the worker are healed.
func (s *site) cut(i int, do func(*zktest.Proxy), to ...int) func() {
	s.doors(i, do, to...)
	return func() { s.doors(i, (*zktest.Proxy).Heal) }
}

func (k strike) blackhole(p *zktest.Proxy) { p.Blackhole(k.Direction) }

func refuse(p *zktest.Proxy) {
	p.Refuse(true)
	p.Disconnect()
}

func (s *site) slowWorker(k strike) func() {
	i := s.worker(k)
	s.doors(i, func(p *zktest.Proxy) { p.Delay(s.timeout / 50) })
	return func() { s.doors(i, func(p *zktest.Proxy) { p.Delay(0) }) }
}

// arm has a fault strike at the next request of a kind of a worker, or at its answer.
func (s *site) arm(k strike, fault func(*zktest.Proxy, zktest.Match) *zktest.Fault) func() {
	var armed []*zktest.Fault
	s.doors(s.worker(k), func(p *zktest.Proxy) { armed = append(armed, fault(p, zktest.Any(k.Op))) })
	return func() {
		for _, f := range armed {
			f.Release()
		}
	}
}

// corner leaves the holder one server that does not lead, and then cuts that off from the others.
// It answers for a while, and the leader, which hears nothing of the holder any more, ends the
// session.
func (s *site) corner(k strike) func() {
	i, last := s.holder(), k.Server
	if last == s.leads(k) {
		last = k.Peer
	}
	heal := s.cut(i, refuse, (last+1)%voters, (last+2)%voters)
	// Until the holder has asked something there, or could have: one that is stopped, or is in its waits between dials,
	// does not.
	all, way := func(zktest.Request) bool { return true }, s.proxies[i][last]
	before := way.Count(all)
	eventually(s.timeout/4, func() bool { return way.Count(all) > before })
	healServers := s.isolate(last)
	return func() { healServers(); heal() }
}

func (s *site) disconnect(who ...int) func() {
	for _, i := range who {
		s.doors(i, (*zktest.Proxy).Disconnect)
	}
	return nothing
}

// round begins and ends strikes in time, one after another, heals, and checks that every worker is served.
func (s *site) round(strikes []strike) {
	s.Helper()
	type act struct {
		at time.Duration
		do func()
	}
	var acts []act
	for _, k := range strikes {
		var end func()
		acts = append(acts, act{k.At, func() { end = kinds[k.Kind](s, k) }}, act{k.At + k.For, func() { end() }})
	}
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	s.tell("attack")
	began := time.Now()
	for _, a := range acts {
		pause(s.Context(), a.at-time.Since(began)) // the plan is one of moments, whatever happens
		a.do()
	}
	s.tell("calm")
	s.faults += len(strikes)
	s.heal()
	stall := 5 * s.timeout // the attack goes on after that
	took, late := s.served(now(), stall)
	if len(late) > 0 {
		s.stalls++
	} else {
		s.waited = append(s.waited, took)
	}
	s.Logf("%+v; served after %v; not within %v: %v", strikes, took.Round(time.Millisecond), stall, late)
}
