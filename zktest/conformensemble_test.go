package zktest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// ensemblePair returns two ensembles of three servers, and dialers to a follower or to the leader of each.
func ensemblePair(t *testing.T, leading bool, ours *Server, real *Ensemble) pair {
	leader, err := real.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	to, at := 0, (leader+1)%3
	if leading {
		to, at = 2, leader
	}
	nudge(t, real.Addr(at))
	dial := ours.DialerTo(to)
	return pair{
		ours: func() (net.Conn, error) { return dial(context.Background(), "tcp", "") },
		real: func() (net.Conn, error) { return net.Dial("tcp", real.Addr(at)) },
	}
}

// nudge pings a real server often, from a client of its own. Until ZooKeeper 3.9, the CommitProcessor of a leader or
// follower can overlook a request, and then does not answer it before the next one arrives.
func nudge(t *testing.T, addr string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		_, err := readFrame(conn)
		close(connected)
		for err == nil {
			_, err = readFrame(conn)
		}
	})
	running.Go(func() {
		_, err := conn.Write(connectFrame(0, make([]byte, 16), 30_000))
		for err == nil {
			<-time.After(50 * time.Millisecond)
			e := znode.NewFrame()
			e.Int32(codec.XidPing)
			e.Int32(int32(OpPing))
			_, err = conn.Write(e.Frame())
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		running.Wait()
	})
	<-connected
}

func startEnsembles(t *testing.T, opts ...RealOption) (*Server, *Ensemble) {
	real := StartReal(t, append(opts, Servers(3), ContainerCheck(time.Hour))...)
	ours := Start(t, versionOf(t, real), Servers(3), TickTime(500*time.Millisecond), MinSessionTimeout(time.Second),
		MaxSessionTimeout(time.Minute), ContainerCheck(time.Hour))
	return ours, real
}

// Followers and leaders answer as real ones do.
func TestEnsembleLikeReal(t *testing.T) {
	longtest.Only(t)
	ours, real := startEnsembles(t)
	for role, servers := range map[string]pair{
		"follower": ensemblePair(t, false, ours, real), "leader": ensemblePair(t, true, ours, real),
	} {
		all := scripts()
		delete(all, "new server") // /zookeeper/config has the names of the servers
		for name, steps := range all {
			t.Run(role+"/"+name, func(t *testing.T) {
				compare(t, servers, 3, withoutUnanswered(ours, steps))
			})
		}
		for seed := range uint64(10) {
			t.Run(fmt.Sprint(role, "/seed=", seed), func(t *testing.T) {
				compare(t, servers, 3, withoutUnanswered(ours, newGenerator(seed).sequence(3)))
			})
		}
	}
}

// withoutUnanswered drops requests that a real ensemble never answers: a reconfig that the leader cannot
// parse and, if the release parses writes before it gives them a number, all such writes but multis.
func withoutUnanswered(ours *Server, steps []step) []step {
	return slices.DeleteFunc(steps, func(s step) bool {
		switch s.op {
		case OpReconfig:
			return true
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpSetACL:
			d := &znode.Decoder{Decoder: codec.Decoder{Rest: s.body0()}}
			d.Operation(int32(s.op))
			return d.Bad && ours.state.Imitated().ParsesFirst
		}
		return false
	})
}
