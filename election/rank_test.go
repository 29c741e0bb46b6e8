package election_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// party is the candidates of one election in virtual time. Each is a process of its own.
type party struct {
	t       *testing.T
	server  *zktest.Server
	connect func() *session.Manager

	mu  sync.Mutex
	led []string // the ids of all terms, in order
}

// member is one candidate of a party.
type member struct {
	m     *session.Manager
	e     *election.Election
	stop  context.CancelFunc
	ended chan struct{}
	slow  time.Duration // its function takes so long to end
}

const dir = "/election/party"

func inParty(t *testing.T, f func(t *testing.T, p *party)) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
		f(t, &party{t: t, server: server, connect: connect})
	})
}

// join starts a candidate, and waits until it stands in the queue or leads.
func (p *party) join(id string, opts ...election.Option) *member {
	p.t.Helper()
	c := &member{m: p.connect(), ended: make(chan struct{})}
	c.e = newElection(p.t, c.m, dir, append(opts, election.WithID(id))...)
	var ctx context.Context
	ctx, c.stop = context.WithCancel(p.t.Context())
	go func() {
		defer close(c.ended)
		_ = c.e.Run(ctx, func(ctx context.Context) error {
			p.mu.Lock()
			p.led = append(p.led, id)
			p.mu.Unlock()
			<-ctx.Done()
			time.Sleep(c.slow)
			return nil
		})
	}()
	p.t.Cleanup(c.leave)
	synctest.Wait()
	return c
}

// leave ends a candidate in order.
func (c *member) leave() {
	c.stop()
	<-c.ended
}

// gone reports whether its Run has returned.
func (c *member) gone() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// die ends the session of a candidate, which never comes back.
func (p *party) die(c *member) {
	p.t.Helper()
	id := testserver.Session(p.t, c.m).ID()
	c.stop()
	must(p.t, p.server.Expire(p.t.Context(), id))
	synctest.Wait()
}

// pass lets time go by.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want compares the terms so far, in order.
func (p *party) want(ids ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if diff := cmp.Diff(ids, p.led); diff != "" {
		p.t.Fatalf("terms (-want +got):\n%s", diff)
	}
}

// last returns whose term was the last.
func (p *party) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.led[len(p.led)-1]
}

// ranked is WithRank.
var ranked = election.WithRank

// A better candidate takes over once it has been there for the session timeout. Those in between are not called,
// and no other move follows.
func TestRank(t *testing.T) {
	for name, more := range map[string][]election.Option{"selector": nil, "latch": {election.WithLeaderLatch()}} {
		t.Run(name, func(t *testing.T) {
			inParty(t, func(t *testing.T, p *party) {
				a := p.join("a", append(more, ranked(0))...)
				p.join("b", append(more, ranked(1))...)
				p.join("c", append(more, ranked(1))...)
				a.slow = 3 * time.Second
				p.join("best", append(more, ranked(math.MaxInt32))...)
				p.join("best too", append(more, ranked(math.MaxInt32))...)
				p.want("a")
				pass(10*time.Second - time.Millisecond)
				p.want("a")
				pass(3 * time.Second) // b has asked too
				p.want("a")
				pass(time.Second)
				p.want("a", "best")
				pass(time.Hour)
				p.want("a", "best")
				all, err := a.e.Contenders(t.Context())
				must(t, err)
				var ranks []int
				for _, c := range all {
					ranks = append(ranks, c.Rank)
				}
				slices.Sort(ranks[2:])
				if diff := cmp.Diff([]int{math.MaxInt32, math.MaxInt32, 0, 1, 1}, ranks); diff != "" {
					t.Errorf("ranks (-want +got):\n%s", diff)
				}
				leader, err := a.e.Leader(t.Context())
				must(t, err)
				if leader.ID != "best" || leader.Rank != math.MaxInt32 {
					t.Errorf("leader %q of rank %d", leader.ID, leader.Rank)
				}
			})
		})
	}
}

// A better candidate that does not last for the delay moves nothing, however often it comes. Nor does the time
// of a former session count.
func TestRankComesAndGoes(t *testing.T) {
	const delay = time.Minute
	inParty(t, func(t *testing.T, p *party) {
		p.join("a", ranked(0))
		for range 5 {
			c := p.join("best", ranked(1), election.WithTakeoverDelay(delay))
			pass(delay - time.Second)
			c.leave()
		}
		c := p.join("best", ranked(1), election.WithTakeoverDelay(delay))
		for range 5 {
			pass(delay - time.Second)
			must(t, p.server.Expire(t.Context(), testserver.Session(t, c.m).ID()))
		}
		p.want("a")
		pass(2 * delay)
		p.want("a", "best")
	})
}

// The better candidate dies after it has asked. Then another one leads when its session has expired.
func TestRankDies(t *testing.T) {
	inParty(t, func(t *testing.T, p *party) {
		a := p.join("a", ranked(0))
		a.slow = 5 * time.Second
		p.join("b", ranked(0))
		best := p.join("best", ranked(1))
		pass(12 * time.Second) // a ends
		p.die(best)
		p.want("a")
		pass(4 * time.Second) // b lets its turn pass, and both come anew, in any order
		next := p.last()
		p.want("a", next)
		if next == "best" {
			t.Error("the candidate that has died leads")
		}
		pass(time.Hour)
		p.want("a", next)
	})
}

// Equal candidates, and those of Curator and kazoo, are not asked. A leader without the option is.
func TestRankOfOthers(t *testing.T) {
	inParty(t, func(t *testing.T, p *party) {
		p.join("plain")
		p.join("one", ranked(1))
		pass(time.Minute)
		p.want("plain", "one")
		p.join("another one", ranked(1))
		pass(time.Minute)
		p.want("plain", "one")
	})
	inParty(t, func(t *testing.T, p *party) {
		s := testserver.Session(t, p.connect())
		for _, name := range []string{"/election", dir} { // the parent first
			_, err := s.Create(t.Context(), name, nil, session.Persistent)
			must(t, err)
		}
		node, err := s.Create(t.Context(), dir+"/_c_0b3ea4c1-6f9a-4c4e-9d53-2f1c1c8f6a01-lock-", []byte("them"), session.EphemeralSequential)
		must(t, err)
		p.join("best", ranked(1))
		pass(time.Minute)
		data, _, err := s.Get(t.Context(), node)
		must(t, err)
		if string(data) != "them" {
			t.Errorf("the data of a node of Curator is %q", data)
		}
		p.want()
	})
}

// The leader was asked, and its WithTermEnd decides as after any other request. Candidates that let their turn pass
// have had no term.
func TestRankTermEnd(t *testing.T) {
	inParty(t, func(t *testing.T, p *party) {
		var ends []error
		enough := errors.New("enough")
		end := election.WithTermEnd(func(err error) error {
			ends = append(ends, err)
			return enough
		})
		a := p.join("a", ranked(0), end)
		b := p.join("b", ranked(0), end)
		p.join("best", ranked(1))
		pass(time.Minute)
		if len(ends) != 1 || !errors.Is(ends[0], election.ErrResigned) {
			t.Errorf("terms have ended with %v", ends)
		}
		if !a.gone() || b.gone() {
			t.Errorf("Run of the leader has returned: %v; that of one that has let its turn pass: %v", a.gone(), b.gone())
		}
	})
}

// A rolling deployment of several replicas, in any order, moves the leadership once, although all that are
// replaced go to the end of the queue or leave.
func TestRankRollingDeployment(t *testing.T) {
	const replicas = 4
	for first := range replicas { // the old replica that is stopped first; 0 leads
		t.Run(fmt.Sprint("first ", first), func(t *testing.T) {
			inParty(t, func(t *testing.T, p *party) {
				old := make([]*member, replicas)
				p.server.Delay(time.Millisecond)
				for i := range old {
					old[i] = p.join(fmt.Sprint("v1-", i), ranked(1))
					pass(time.Second)
				}
				for i := range replicas { // each new one is ready for a while before an old one is stopped
					p.join(fmt.Sprint("v2-", i), ranked(2))
					pass(30 * time.Second)
					old[(first+i)%replicas].leave()
					pass(5 * time.Second)
				}
				pass(time.Hour)
				p.want("v1-0", "v2-0")
			})
		})
	}
}

// The leader is asked when those between have been, however slow the network of the better candidate is.
func TestRankAsksLeaderLast(t *testing.T) {
	inParty(t, func(t *testing.T, p *party) {
		a := p.join("a", ranked(0))
		p.join("b", ranked(0))
		p.join("best", ranked(1))
		all, err := a.e.Contenders(t.Context())
		must(t, err)
		slow := p.server.HoldRequest(zktest.On(zktest.OpSetData, all[1].Path))
		pass(11 * time.Second)
		<-slow.Hit()
		p.want("a")
		slow.Release()
		pass(time.Second)
		p.want("a", "best")
	})
}

// The same on the servers of the other tests: those ahead of the better candidate are not called for a moment either.
func TestRankOnServers(t *testing.T) {
	dir, terms := testserver.Path(t), make(chan *served)
	join := func(id string, rank int) {
		campaignTo(t, terms, connect(t), dir, id, ranked(rank), election.WithTakeoverDelay(100*time.Millisecond))
	}
	join("a", 1)
	first := receive(t, "the first term", terms)
	for i, id := range []string{"b", "c", "d"} {
		join(id, 1)
		testserver.WaitChildren(t, dir, i+2)
	}
	join("best", 2)
	wantErr(t, "cause", first.over(t), election.ErrResigned)
	if second := receive(t, "the second term", terms); second.id != "best" {
		t.Errorf("%s leads", second.id)
	}
}

// Ranks and delays outside of the bounds.
func TestRankOptions(t *testing.T) {
	m := connect(t)
	for _, opt := range []election.Option{
		ranked(-1), ranked(math.MinInt), election.WithTakeoverDelay(0), election.WithTakeoverDelay(-1),
	} {
		_, err := election.New(m, "/e", opt)
		wantErr(t, "New", err, session.ErrInvalid)
	}
	if math.MaxInt > math.MaxInt32 {
		n := math.MaxInt32
		_, err := election.New(m, "/e", ranked(n+1))
		wantErr(t, "New", err, session.ErrInvalid)
	}
}
