package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// others has another client take the fixed name.
func (e *env) others() *session.Node {
	e.t.Helper()
	n, err := e.other.Enter(patient(e.t), e.form(true))
	return e.want(n, err)
}

// wantOwner checks whose node has the fixed name.
func (e *env) wantOwner(s *session.Session) {
	e.t.Helper()
	stat, err := e.other.Exists(patient(e.t), e.d+"/lock-")
	must(e.t, err)
	if stat == nil || stat.EphemeralOwner != s.ID() {
		e.t.Errorf("the node is %+v, want that of the session 0x%x", stat, s.ID())
	}
}

// A fixed name that is taken is zk.ErrNodeExists, also if the session itself has it, and the node stays.
func TestEnterTakenName(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		for _, owner := range []*session.Session{e.other, e.s} {
			n, err := owner.Enter(patient(t), e.form(true))
			e.want(n, err)
			wantErr(t, "Enter", expect.Err(e.s.Enter(patient(t), e.form(true))), zk.ErrNodeExists)
			e.wantOwner(owner)
			e.removes(n)
		}
		e.removes(e.whenRoom(e.form(true)))
	})
}

// A lost reply does not make the node of another client ours: not if the create was cut, and not if its node has gone
// since.
func TestEnterLosesName(t *testing.T) {
	for _, committed := range []bool{false, true} {
		for _, cancelled := range []bool{false, true} {
			inBubble(t, func(t *testing.T, e *env) {
				cut := e.CutBefore
				if committed {
					cut = e.CutAfterCommit
				}
				f := cut(zktest.On(zktest.OpCreate, e.d+"/"))
				e.Refuse(true)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := e.begin(ctx, e.form(true))
				<-f.Hit()
				if cancelled {
					cancel()
				}
				if committed {
					must(t, e.DeleteNode(e.d+"/lock-"))
				}
				theirs := e.others()
				e.Refuse(false)
				want := zk.ErrNodeExists
				if cancelled {
					want = context.Canceled
				}
				wantErr(t, "Enter", (<-ended).err, want)
				time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble
				e.wantOwner(e.other)
				e.removes(theirs)
				e.removes(e.whenRoom(e.form(true)))
			}, session.WithNodeLimits(1, 1<<20))
		}
	}
}

// An Enter of a fixed name waits for removals of it, those of a cancelled Enter included. So no delete that is repeated
// hits the new node.
func TestEnterWaitsForRemoval(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		for _, by := range []string{"the node", "the path", "a cancelled Enter"} {
			e.anew()
			held := e.HoldReply(zktest.On(zktest.OpDelete, e.d+"/"))
			var r *session.Removal
			if by == "a cancelled Enter" {
				reply := e.HoldReply(zktest.On(zktest.OpCreate, e.d+"/"))
				ctx, cancel := context.WithCancel(patient(t))
				ended := e.begin(ctx, e.form(true))
				expect.Receive(t, "the create", reply.Hit())
				cancel()
				wantErr(t, "Enter", expect.Receive(t, "the end", ended).err, context.Canceled)
				reply.Release()
			} else {
				n, err := e.s.Enter(patient(t), e.form(true))
				if e.want(n, err); by == "the node" {
					r = n.Remove(t.Context())
				} else {
					r = e.s.Remove(t.Context(), n.Path)
				}
			}
			expect.Receive(t, "the delete", held.Hit())
			e.ResetRequests()
			ended := e.begin(patient(t), e.form(true))
			synctest.Wait()
			expect.Requests(t, by+": creates before the end of the removal", e.Server, zktest.On(zktest.OpCreate, e.d+"/lock-"), 0)
			e.Disconnect() // the reply is lost, and the delete repeated
			held.Release()
			got := expect.Receive(t, "Enter", ended)
			n := e.want(got.node, got.err)
			if r != nil {
				expect.Receive(t, "the removal", r.Done())
				must(t, r.Err())
			}
			must(t, e.s.Sync(patient(t), e.d))
			e.wantOwner(e.s)
			e.removes(n)
		}
	})
}

// A removal whose reply was lost does not delete a node that the same session has made since by Create, also if the node that
// is removed was found after the reply to its own create was lost.
func TestRemovalSparesOwnNewNode(t *testing.T) {
	for _, found := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			slow := session.WithBackoff(time.Hour, time.Hour) // a wait that is drawn from it is hardly ever short
			e := newEnv(t, slow)
			if found {
				e.CutAfterCommit(zktest.On(zktest.OpCreate, e.d+"/"))
			}
			n, err := e.s.Enter(t.Context(), e.form(true))
			e.want(n, err)
			f := e.CutAfterCommit(zktest.On(zktest.OpDelete, e.d+"/"))
			look := e.CutBefore(zktest.On(zktest.OpExists, n.Path)) // the session looks at once what stands there, and then waits
			r := n.Remove(t.Context())
			<-f.Hit()
			<-look.Hit()
			synctest.Wait()
			must(t, expect.Err(e.s.Create(t.Context(), n.Path, nil, session.Persistent)))
			if isClosed(r.Done()) {
				t.Error("the removal has ended before the new node was there")
			}
			<-r.Done()
			must(t, r.Err())
			time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble
			if stat, err := e.other.Exists(t.Context(), n.Path); err != nil || stat == nil || stat.EphemeralOwner != 0 {
				t.Errorf("the new node is %+v, %v", stat, err)
			}
		})
	}
}
