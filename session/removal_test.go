package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A removal whose session ends has the error of the session, and one of a path that is not valid fails at once.
func TestRemoveFails(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		wantErr(t, "a bad path", gone(e.s.Remove(t.Context(), "no/path")), session.ErrInvalid)
		e.Refuse(true)
		e.Disconnect()
		synctest.Wait()
		r := e.s.Remove(t.Context(), e.d+"/n")
		must(t, e.Expire(t.Context(), e.s.ID()))
		e.Refuse(false)
		if err := gone(r); err != nil { // the delete can have been faster
			wantErr(t, "a lost session", err, session.ErrLost)
		}
		<-e.s.Done()
		wantErr(t, "an ended session", gone(e.s.Remove(t.Context(), e.d+"/n")), session.ErrLost)
	})
}

// allow sets what the clients may do in the directory.
func (e *env) allow(perms int32) {
	e.t.Helper()
	must(e.t, expect.Err(rawClient(e.t, e.Dialer()).SetACL(e.d, zk.WorldACL(perms), -1)))
}

// A refusal is reported at once, and the next Enter of a fixed name says so at once. The removal goes on, and succeeds when the
// client has the right again.
func TestRemoveRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		fixed := enter(t, e.s, e.d+"/lock-")
		number, err := e.s.Enter(t.Context(), e.form(false))
		must(t, err)
		e.allow(zk.PermAll &^ zk.PermDelete)
		wantErr(t, "Enter", expect.Err(e.s.Enter(t.Context(), e.form(true))), zk.ErrNodeExists)
		wantErr(t, "Remove", gone(fixed.Remove(t.Context())), zk.ErrNoAuth)
		wantErr(t, "Remove", gone(number.Remove(t.Context())), zk.ErrNoAuth)
		_, err = e.s.Enter(t.Context(), e.form(true))
		wantErr(t, "Enter behind a removal that is refused", err, zk.ErrNoAuth)
		e.allow(zk.PermAll)
		e.waitLeft(0)
		e.removes(e.whenFree(e.form(true)))
	})
}

// A node whose delete was refused makes no room for others while that is tried again: it would in each try.
func TestRefusedDeleteMakesNoRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		node, err := e.s.Enter(t.Context(), e.form(false))
		must(t, err)
		e.allow(zk.PermAll &^ zk.PermDelete)
		wantErr(t, "Remove", gone(node.Remove(t.Context())), zk.ErrNoAuth)
		again := e.HoldReply(zktest.Any(zktest.OpDelete))
		<-again.Hit()
		second := e.begin(t.Context(), e.form(false))
		synctest.Wait()
		again.Release()
		wantErr(t, "Enter", (<-second).err, session.ErrTooManyNodes)
		e.allow(zk.PermAll)
		e.removes(e.enterWhen(e.form(false), session.ErrTooManyNodes))
	}, session.WithNodeLimits(1, 1<<20))
}

// However many nodes the servers refuse to delete, one session does not keep them busy with that: some 50 tries a second.
func TestManyRefusedDeletes(t *testing.T) {
	var deletes atomic.Int64
	count := session.WithTrace(session.Trace{Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
		if r.Op == "delete" {
			deletes.Add(1)
		}
		return ctx, func(error) {}
	}})
	inBubble(t, func(t *testing.T, e *env) {
		const nodes = 600
		all := make([]*session.Node, nodes)
		for i := range all {
			node, err := e.s.Enter(t.Context(), e.form(false))
			must(t, err)
			all[i] = node
		}
		e.allow(zk.PermAll &^ zk.PermDelete)
		for _, node := range all {
			wantErr(t, "Remove", gone(node.Remove(t.Context())), zk.ErrNoAuth)
		}
		time.Sleep(time.Minute) // the tries of all are spread now
		before := deletes.Load()
		time.Sleep(time.Minute)
		if n := deletes.Load() - before; n < nodes/2 || n > 4000 {
			t.Errorf("%d deletes in a minute", n)
		}
		e.allow(zk.PermAll)
	}, count)
}

// On a new connection the deletes that are owed go before the requests of others, whether their answers were lost, or
// they began without a connection. Cut tells that a removal waits for another connection.
func TestOwedDeletesGoFirst(t *testing.T) {
	const nodes = 10 // so many leave one by one
	for how, breaks := range map[string]func(*env){
		"the request is lost": func(e *env) { e.CutBefore(zktest.Any(zktest.OpDelete)) },
		"the reply is lost":   func(e *env) { e.CutAfterCommit(zktest.Any(zktest.OpDelete)) },
		"no connection":       func(e *env) { e.Refuse(true); e.Disconnect(); synctest.Wait() },
	} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, e *env) {
				for i := range nodes {
					enter(t, e.s, fmt.Sprint("/n", i))
				}
				synctest.Wait()
				breaks(e)
				var all []*session.Removal
				for i := range nodes {
					all = append(all, e.s.Remove(context.Background(), fmt.Sprint("/n", i)))
					if how == "no connection" && !isClosed(all[i].Cut()) {
						t.Errorf("removal %d is not cut at its beginning", i)
					}
				}
				<-all[0].Cut()
				e.ResetRequests()
				created := expect.Go(func() error { return expect.Err(makeNode(context.Background(), e.s, "/other", nil)) })
				e.Refuse(false)
				must(t, <-created)
				for i, r := range all {
					if must(t, gone(r)); !isClosed(r.Cut()) {
						t.Errorf("removal %d is not cut", i)
					}
				}
				deletes := 0
				for _, r := range e.Requests() {
					switch {
					case r.Op == zktest.OpDelete:
						deletes++
					case r.Path == "/other" && deletes < nodes:
						t.Fatalf("the create was sent after %d deletes", deletes)
					}
				}
			})
		})
	}
}

// A delete whose reply was lost with the connection leaves no node counted that is gone, in whichever way it was deleted, and
// whether the caller still waits.
func TestLostDeleteFreesRoom(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		for _, by := range []string{"Delete", "Multi", "Remove"} {
			t.Run(fmt.Sprintf("%s, cancelled %v", by, cancelled), func(t *testing.T) {
				inBubble(t, func(t *testing.T, e *env) {
					node := enter(t, e.s, "/d/a")
					op := zktest.OpDelete
					if by == "Multi" {
						op = zktest.OpMulti
					}
					held := e.HoldReply(zktest.On(op, node.Path))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					ended := expect.Go(func() error { return deletes(ctx, e.s, node, by) })
					<-held.Hit()
					if cancelled {
						cancel()
						<-ended
					}
					e.Disconnect()
					if !cancelled {
						<-ended // nil or ErrUncertain
					}
					must(t, e.s.Sync(t.Context(), "/"))
					time.Sleep(5 * time.Second) // in a bubble
					enter(t, e.s, "/d/b")
				}, session.WithNodeLimits(1, 1<<20))
			})
		}
	}
}

// A hook that blocks in the delete of a node holds up the call that has begun the delete, and no other Remove of the node: a
// turn that is lost can be left by two goroutines at once.
func TestBlockedHookOfARemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := newPause("delete")
		_, s := virtually(t, "h:1", zktest.Start(t).Dialer(), blocked.hooks())
		node := enter(t, s, "/d/n")
		first, second := make(chan *session.Removal, 1), make(chan *session.Removal, 1)
		go func() { first <- node.Remove(blocked.mark(t.Context())) }()
		synctest.Wait()
		go func() { second <- node.Remove(t.Context()) }()
		if synctest.Wait(); len(second) == 0 {
			t.Error("the second Remove waits for the hook of the first")
		}
		close(blocked.goOn)
		if one, two := <-first, <-second; one != two || gone(one) != nil {
			t.Errorf("two calls of Remove return %v and %v", one, two)
		}
	})
}

// A node that finds room because another is being removed is created behind the delete, also if another goroutine creates it at the
// moment in which the delete is sent. So the servers never see more nodes than WithNodeLimits allows.
func TestRoomIsBehindTheDelete(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		enter := func() (*session.Node, error) {
			return e.s.Enter(t.Context(), session.NewNode{Dir: "/d", Name: "n-"})
		}
		for range 1000 { // a create that finds the room too early gets ahead in some of them
			node, err := enter()
			must(t, err)
			e.ResetRequests()
			var next *session.Node
			var other sync.WaitGroup
			tries := make(chan struct{})
			other.Go(func() {
				_, err = enter()
				close(tries)
				for errors.Is(err, session.ErrTooManyNodes) {
					next, err = enter()
				}
			})
			<-tries
			node.Remove(t.Context())
			other.Wait()
			must(t, err)
			deleted := false
			for _, r := range e.Requests() {
				if deleted = deleted || r.Op == zktest.OpDelete; r.Op == zktest.OpCreate && !deleted {
					t.Fatal("a create is ahead of the delete that makes room for it")
				}
			}
			<-next.Remove(t.Context()).Done()
		}
	}, session.WithNodeLimits(1, 1<<20))
}
