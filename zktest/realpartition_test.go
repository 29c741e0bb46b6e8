package zktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

// A leader that is cut off from the others stops leading, and they elect another one. It cannot rejoin
// before the partition heals, whichever server opens the connection.
func TestServersPartitioned(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	e := zktest.StartReal(t, zktest.Nodes(3), zktest.TickTime(200*time.Millisecond), zktest.Partitions())
	long, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for round := range 2 {
		old, err := e.Leader(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		for i := range e.Len() {
			if i == old {
				continue
			}
			if err := e.Partition(old, i); err != nil {
				t.Fatal(err)
			}
		}
		zktest.Eventually(t, time.Minute, "another leads", func() bool {
			now, err := e.Leader(long)
			return err == nil && now != old
		})
		zktest.Eventually(t, time.Minute, "the old leader does not serve", func() bool {
			_, err := e.Metrics(long, old)
			return err != nil
		})
		if round == 1 { // a server that restarts has no other way in, either
			if err := e.Kill(old); err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(long, 3*time.Second)
			err := e.Start(short, old)
			cancel()
			if err == nil {
				t.Error("a server that is cut off from the others serves")
			}
		}
		e.HealPartitions()
		if err := e.WaitReady(long); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPartitionRefuses(t *testing.T) {
	t.Parallel()
	sharedServer(t)
	e := shared.ensemble
	if err := e.Partition(0, 0); err == nil {
		t.Error("a partition of servers that speak to each other directly: no error")
	}
	e.HealPartitions() // does nothing
}
