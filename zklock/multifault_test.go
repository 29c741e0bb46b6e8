package zklock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// If one of the locks is lost while the MultiLock waits for another, it gives up all and begins again.
func TestMultiLosesOneWhileItWaits(t *testing.T) {
	takeJointly(t, func(j *joint) {
		ctx := j.t.Context()
		j.must(j.others[1].Lock(ctx))
		locked := make(chan error, 1)
		go func() { locked <- j.all.Lock(ctx) }()
		time.Sleep(time.Second)
		names, _, err := j.other.Children(ctx, "/a")
		j.must(err)
		if len(names) != 1 {
			j.t.Fatalf("%q in the first", names)
		}
		j.must(j.other.Delete(ctx, "/a/"+names[0], -1))
		time.Sleep(time.Second)
		again, _, err := j.other.Children(ctx, "/a")
		j.must(err)
		if len(again) != 1 || again[0] == names[0] {
			j.t.Errorf("%q in the first, after %q", again, names)
		}
		j.want("while it waits", 1, 2, 0)
		j.must(j.others[1].Unlock())
		j.must(<-locked)
		j.must(j.all.Unlock())
		j.want("in the end", 0, 0, 0)
	})
}

// If the session is lost while one of the locks is entered in the same flight, no hook is told that the others are held: their
// nodes are gone.
func TestMultiLosesSomeInItsFlight(t *testing.T) {
	var held []string
	takeJointly(t, func(j *joint) {
		ctx := j.t.Context()
		ours, err := j.m.Session(ctx)
		j.must(err)
		var creates atomic.Int64
		last := j.server.HoldRequest(func(r zktest.Request) bool {
			return r.Op == zktest.OpCreate && r.Session == ours.ID() && creates.Add(1) == int64(len(jointPaths))
		})
		held = nil
		locked := make(chan error, 1)
		go func() { locked <- j.all.Lock(ctx) }()
		<-last.Hit()
		time.Sleep(time.Second) // the others have their turns
		j.must(j.server.Expire(ctx, ours.ID()))
		last.Release()
		j.must(<-locked)
		if len(held) != len(jointPaths) {
			j.t.Errorf("told that %q are held", held)
		}
		j.must(j.all.Unlock())
		j.want("in the end", 0, 0, 0)
	}, session.WithTrace(session.Trace{Hold: func(_ context.Context, h session.HoldInfo) func(error) {
		held = append(held, h.Node)
		return nil
	}}))
}

// Do reports a loss also if the release of another lock is not confirmed yet, which Do does not report.
func TestMultiDoLostAndPending(t *testing.T) {
	takeJointly(t, func(j *joint) {
		ctx := j.t.Context()
		wantErr(j.t, "Do", j.all.Do(ctx, func(inside context.Context) error {
			names, _, err := j.other.Children(ctx, "/a")
			j.must(err)
			j.must(j.other.Delete(ctx, "/a/"+names[0], -1))
			<-inside.Done()
			j.server.Refuse(true)
			j.server.Disconnect()
			return nil
		}), session.ErrLost)
		j.server.Refuse(false)
		time.Sleep(5 * time.Second)
		j.want("in the end", 0, 0, 0)
	})
}
