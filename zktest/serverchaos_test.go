package zktest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// During random faults of servers and links, acknowledged writes are kept and reads never go back. In the
// end all servers have the same state.
func TestEnsembleKeepsWhatItAcknowledges(t *testing.T) {
	seeds := longtest.Pick(10, 60)
	elections, written := int64(0), 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			servers := 3 + 2*(seed%2)
			onStage(t, func(s *stage) {
				c := newChaos(s, uint64(seed), servers)
				for range 150 {
					c.strike()
					c.work()
				}
				c.heal()
				c.check()
				elections += s.state.Epoch()
				written += len(c.acknowledged)
			}, Servers(servers))
		})
	}
	t.Logf("%d writes acknowledged, %d elections", written, elections)
	if elections < int64(2*seeds) || written < 20*seeds {
		t.Error("that is too few")
	}
}

// chaos makes random faults, and has clients that write.
type chaos struct {
	s       *stage
	rng     *rand.Rand
	servers int

	writers      []*writer
	made         int
	acknowledged []string
}

// A writer is a client that creates one node after the other.
type writer struct {
	*caller
	asked map[int32]string
	heard int
}

func newChaos(s *stage, seed uint64, servers int) *chaos {
	c := &chaos{s: s, rng: rand.New(rand.NewPCG(seed, 1)), servers: servers}
	for i := range 4 {
		c.writers = append(c.writers, &writer{
			caller: s.call(fmt.Sprint("writer ", i), i%servers, nil, 10*time.Second), asked: make(map[int32]string),
		})
	}
	return c
}

// strike makes a random fault.
func (c *chaos) strike() {
	i, j := c.rng.IntN(c.servers), c.rng.IntN(c.servers)
	switch c.rng.IntN(22) {
	case 0, 1:
		c.s.CutLink(i, j)
	case 2:
		c.s.CutLink(i, j)
		c.s.CutLink(j, i)
	case 3, 4:
		c.s.HealLinks()
	case 5:
		c.s.DelayLink(i, j, time.Duration(c.rng.IntN(300))*time.Millisecond)
	case 6:
		c.s.HoldServer(i)
	case 7, 8:
		c.s.ReleaseServer(i)
	case 9:
		c.s.StopServer(i)
	case 10, 11:
		if err := c.s.StartServer(i); err != nil {
			c.s.t.Error(err)
		}
	case 12:
		c.s.SetCommitDelay(time.Duration(c.rng.IntN(100)) * time.Millisecond)
	case 13:
		if leader, ok := c.s.Leader(); ok {
			c.s.CutLink(leader, i)
		}
	}
	pause := 1000
	if c.rng.IntN(6) == 0 {
		pause = 15_000
	}
	c.s.pass(time.Duration(c.rng.IntN(pause)) * time.Millisecond)
}

// work makes the clients process what they have received, and write more.
func (c *chaos) work() {
	for i, w := range c.writers {
		c.listen(w)
		w.mu.Lock()
		closed, session := w.closed, w.session
		w.mu.Unlock()
		if closed || c.rng.IntN(30) == 0 {
			c.reconnect(i, session)
			continue
		}
		if session == 0 {
			continue
		}
		c.made++
		path := fmt.Sprintf("/n%d", c.made)
		w.asked[w.ask(plain(path))] = path
		w.ask(ping())
	}
}

func (c *chaos) reconnect(i int, session int64) {
	w := c.writers[i]
	_ = w.conn.Close()
	old := w.caller
	if session == 0 {
		old = nil // it was refused: it is over
	}
	var next *caller
	for range 3 {
		server := c.rng.IntN(c.servers)
		stopped := false
		c.s.member(server, func(m *quorum.Member) { stopped = m.Stopped })
		if !stopped {
			next = c.s.dials(w.name, server, old, 10*time.Second)
			break
		}
	}
	if next == nil {
		return
	}
	if old != nil { // until the server has said what it is
		next.mu.Lock()
		if next.session == 0 && !next.closed {
			next.session, next.password = old.session, old.password
		}
		next.mu.Unlock()
	}
	c.writers[i] = &writer{caller: next, asked: make(map[int32]string)}
}

// listen processes what a client has received since the last call.
func (c *chaos) listen(w *writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.caller.heard[w.heard:] {
		if path := w.asked[r.xid]; path != "" && r.err == znode.CodeOK {
			c.acknowledged = append(c.acknowledged, path)
		}
	}
	w.heard = len(w.caller.heard)
}

// heal ends all faults and waits until the servers have recovered.
func (c *chaos) heal() {
	for i := range c.servers {
		c.s.ReleaseServer(i)
		if err := c.s.StartServer(i); err != nil {
			c.s.t.Error(err)
		}
		for j := range c.servers {
			c.s.DelayLink(i, j, 0)
		}
	}
	c.s.HealLinks()
	c.s.SetCommitDelay(0)
	c.s.pass(time.Minute)
	for _, w := range c.writers {
		c.listen(w)
	}
}

// check compares what the servers answer with each other and with the acknowledged writes.
func (c *chaos) check() {
	if _, ok := c.s.Leader(); !ok {
		c.s.t.Fatal("no server leads")
	}
	asked := []step{look(0, OpGetChildren2, "/", false)}
	for _, path := range c.acknowledged {
		asked = append(asked, there(path))
	}
	var first [][]byte
	for i := range c.servers {
		reader := c.s.call(fmt.Sprint("reader of ", i), i, nil, 10*time.Second)
		var all [][]byte
		for _, one := range asked {
			all = append(all, reader.does(one).body)
		}
		if i == 0 {
			first = all
		} else if !slices.EqualFunc(all, first, bytes.Equal) {
			c.s.t.Errorf("server %d has other nodes than server 0", i)
		}
	}
	metrics, err := c.s.Metrics()
	if n, _ := strconv.Atoi(metrics["zk_num_alive_connections"]); err != nil || n > len(c.writers)+c.servers || metrics["zk_outstanding_requests"] != "0" {
		c.s.t.Errorf("left behind: %v, %v", metrics, err)
	}
}
