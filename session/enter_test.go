package session_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// anew changes to another directory, with nothing under way in it.
func (e *env) anew() {
	e.t.Helper()
	e.cases++
	e.d = fmt.Sprintf("%s/case%d", strings.TrimSuffix(e.d, fmt.Sprintf("/case%d", e.cases-1)), e.cases)
	must(e.t, makeDir(patient(e.t), e.other, e.d))
}

// left returns the children of the directory, which may be missing.
func (e *env) left() []string {
	e.t.Helper()
	names, _, err := e.other.Children(patient(e.t), e.d)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		e.t.Fatal(err)
	}
	return names
}

// waitLeft waits until the directory has n children.
func (e *env) waitLeft(n int) {
	e.t.Helper()
	zktest.Eventually(e.t, testserver.Patience, fmt.Sprint(n, " children"), func() bool { return len(e.left()) == n })
}

// removes removes a node, and waits for that.
func (e *env) removes(n *session.Node) {
	e.t.Helper()
	r := n.Remove(e.t.Context())
	expect.Receive(e.t, "the end of the removal", r.Done())
	must(e.t, r.Err())
}

// begin calls Enter in a goroutine.
func (e *env) begin(ctx context.Context, n session.NewNode) <-chan entered {
	out := make(chan entered, 1)
	go func() {
		node, err := e.s.Enter(ctx, n)
		out <- entered{node, err}
	}()
	return out
}

type entered struct {
	node *session.Node
	err  error
}

func (e *env) want(n *session.Node, err error) *session.Node {
	e.t.Helper()
	must(e.t, err)
	if dir, name := path.Split(n.Path); path.Clean(dir) != e.d || !slices.Contains(n.Names, name) {
		e.t.Fatalf("the node %s is not in its listing %q", n.Path, n.Names)
	}
	if n.Stat == nil || (n.Directory != nil) != (n.DataStat != nil) {
		e.t.Fatalf("the listing %+v", n.Listing)
	}
	return n
}

// form returns a new node with a number or with a fixed name.
func (e *env) form(fixed bool) session.NewNode {
	return session.NewNode{Dir: e.d, Name: "lock-", Data: []byte("x"), Fixed: fixed, Watch: true, Directory: true}
}

// The name has an id that is new for each Enter, and the listing shows all that came before. The watch tells of the next.
func TestEnter(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		var before []string
		var watch *session.Watch
		for range 3 {
			n, err := e.s.Enter(ctx, session.NewNode{Dir: e.d, Name: "lock-", Data: []byte("who"), Watch: true})
			e.want(n, err)
			name := path.Base(n.Path)
			if id, rest, ok := strings.Cut(strings.TrimPrefix(name, "_c_"), "-lock-"); !ok || len(id) != 36 || len(rest) != 10 {
				t.Errorf("the name %q", name)
			}
			before = append(before, name)
			slices.Sort(n.Names)
			slices.Sort(before)
			if !slices.Equal(n.Names, before) {
				t.Errorf("the listing %q, want %q", n.Names, before)
			}
			data, stat, err := e.other.Get(ctx, n.Path)
			must(t, err)
			if string(data) != "who" || stat.EphemeralOwner != e.s.ID() {
				t.Errorf("data %q of the session 0x%x", data, stat.EphemeralOwner)
			}
			if watch == nil { // the create ends the watch of the one before, and further ones at the path
				watch = n.Children
				if watch.Event() != session.WatchPending {
					t.Errorf("event %v of a new watch", watch.Event())
				}
			} else {
				wantEvent(t, watch, session.WatchChanged)
			}
		}
		n, err := e.s.Enter(ctx, session.NewNode{Dir: e.d, Name: "one", Fixed: true})
		e.want(n, err)
		if n.Path != e.d+"/one" {
			t.Errorf("the path %s", n.Path)
		}
		if r := n.Remove(ctx); r != n.Remove(ctx) {
			t.Error("another removal")
		}
		e.removes(n)
		e.waitLeft(3)
	})
}

// Whichever reply is lost, and whether the server has carried out the request or not, Enter makes one node.
func TestEnterLosesReplies(t *testing.T) {
	type faults []*zktest.Fault
	inBubble(t, func(t *testing.T, e *env) {
		for what, arm := range map[string]func(creates, lists, writes, looks zktest.Match) faults{
			"create cut":        func(c, _, _, _ zktest.Match) faults { return faults{e.CutBefore(c)} },
			"create's reply":    func(c, _, _, _ zktest.Match) faults { return faults{e.CutAfterCommit(c)} },
			"listing cut":       func(_, l, _, _ zktest.Match) faults { return faults{e.CutBefore(l)} },
			"listing's reply":   func(_, l, _, _ zktest.Match) faults { return faults{e.CutAfterCommit(l)} },
			"create cut twice":  func(c, _, _, _ zktest.Match) faults { return faults{e.CutBefore(c), e.CutBefore(c)} },
			"create, write":     func(c, _, w, _ zktest.Match) faults { return faults{e.CutAfterCommit(c), e.CutBefore(w)} },
			"create, its reply": func(c, _, w, _ zktest.Match) faults { return faults{e.CutAfterCommit(c), e.CutAfterCommit(w)} },
			"create, list's reply": func(c, l, w, _ zktest.Match) faults {
				return faults{e.CutAfterCommit(c), e.CutAfterCommit(behind(w, l))}
			},
			"create cut, write's reply, create's": func(c, _, w, _ zktest.Match) faults {
				return faults{e.CutBefore(c), e.CutAfterCommit(w), e.CutAfterCommit(c)}
			},
			"create, look's reply": func(c, _, _, look zktest.Match) faults { return faults{e.CutAfterCommit(c), e.CutAfterCommit(look)} },
		} {
			for _, fixed := range []bool{false, true} {
				if what == "create, look's reply" && !fixed {
					continue // the id says enough
				}
				e.anew()
				n := e.form(fixed)
				what := fmt.Sprintf("%s, fixed %v", what, fixed)
				armed := arm(zktest.On(zktest.OpCreate, e.d+"/"), zktest.On(zktest.OpGetChildren2, e.d),
					zktest.On(zktest.OpMulti, e.d), zktest.On(zktest.OpExists, e.d))
				node, err := e.s.Enter(patient(t), n)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				for i, f := range armed {
					expect.Receive(t, fmt.Sprintf("%s: fault %d", what, i), f.Hit())
				}
				e.want(node, err)
				if left := e.left(); len(left) != 1 {
					t.Errorf("%s: %q", what, left)
				}
				_, err = e.s.Enter(patient(t), session.NewNode{Dir: e.d, Name: "more-"})
				wantErr(t, "the room for one node", err, session.ErrTooManyNodes)
				e.removes(node)
				e.waitLeft(0)
			}
		}
	}, session.WithNodeLimits(1, 1<<20))
}

// behind matches as m does, once first has matched.
func behind(first, m zktest.Match) zktest.Match {
	var seen atomic.Bool
	return func(r zktest.Request) bool {
		if first(r) {
			seen.Store(true)
		}
		return seen.Load() && m(r)
	}
}

// When Enter is cancelled, at whatever moment and whatever then becomes of the request, it returns at once. It leaves no
// node, and no room is taken.
func TestEnterIsCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		for what, arm := range map[string]func(creates, lists, writes zktest.Match) *zktest.Fault{
			"create":         func(c, _, _ zktest.Match) *zktest.Fault { return e.HoldRequest(c) },
			"create's reply": func(c, _, _ zktest.Match) *zktest.Fault { return e.HoldReply(c) },
			"list":           func(_, l, _ zktest.Match) *zktest.Fault { return e.HoldRequest(l) },
			"list's reply":   func(_, l, _ zktest.Match) *zktest.Fault { return e.HoldReply(l) },
			"write":          func(c, _, w zktest.Match) *zktest.Fault { e.CutAfterCommit(c); return e.HoldRequest(w) },
			"write's reply":  func(c, _, w zktest.Match) *zktest.Fault { e.CutAfterCommit(c); return e.HoldReply(w) },
			"list behind it": func(c, l, w zktest.Match) *zktest.Fault { e.CutAfterCommit(c); return e.HoldReply(behind(w, l)) },
			"write for none": func(c, _, w zktest.Match) *zktest.Fault { e.CutBefore(c); return e.HoldReply(w) },
		} {
			for _, fixed := range []bool{false, true} {
				for _, lost := range []bool{false, true} {
					e.anew()
					n := e.form(fixed)
					what := fmt.Sprintf("%s, fixed %v, lost %v", what, fixed, lost)
					held := arm(zktest.On(zktest.OpCreate, e.d+"/"), zktest.On(zktest.OpGetChildren2, e.d), zktest.On(zktest.OpMulti, e.d))
					ctx, cancel := context.WithCancel(patient(t))
					ended := e.begin(ctx, n)
					expect.Receive(t, what, held.Hit())
					cancel()
					wantErr(t, what, expect.Receive(t, what, ended).err, context.Canceled)
					if lost {
						e.Disconnect()
					}
					held.Release()
					e.waitEmpty(what)
					e.removes(e.whenRoom(n))
				}
			}
		}
	}, session.WithNodeLimits(1, 1<<20))
}

// whenRoom enters when there is room for the node.
func (e *env) whenRoom(n session.NewNode) *session.Node {
	return e.enterWhen(n, session.ErrTooManyNodes)
}

// whenFree enters when the removal of the last node by that name is not refused any more.
func (e *env) whenFree(n session.NewNode) *session.Node { return e.enterWhen(n, zk.ErrNoAuth) }

// enterWhen enters, again and again while that fails in such a way.
func (e *env) enterWhen(n session.NewNode, not error) (node *session.Node) {
	e.t.Helper()
	zktest.Eventually(e.t, testserver.Patience, "the next node", func() (ok bool) {
		var err error
		if node, err = e.s.Enter(patient(e.t), n); err != nil && !errors.Is(err, not) {
			e.t.Fatal(err)
		}
		return err == nil
	})
	return node
}

// waitEmpty waits until the directory is empty and no request of the session is under way that could change that: it is
// empty behind a round trip of the session.
func (e *env) waitEmpty(what string) {
	e.t.Helper()
	e.waitLeft(0)
	if err := e.s.Sync(patient(e.t), e.d); err != nil {
		e.t.Fatalf("%s: %v", what, err)
	}
	e.waitLeft(0)
}

// twin makes a second node with the id of the first child of the directory.
func (e *env) twin(number int) {
	e.t.Helper()
	first := e.left()[0]
	_, err := makeNode(patient(e.t), e.other, fmt.Sprintf("%s/%s%010d", e.d, first[:len(first)-10], number), nil)
	must(e.t, err)
}

// Of several nodes of one Enter, the lowest is taken, and the others are removed: when a lost reply is looked for, and
// when a node that was ever in doubt is removed. The node of another session is not taken, although it has that id and a
// lower number.
func TestEnterRemovesTwins(t *testing.T) {
	for _, number := range []int{99, -1} {
		inBubble(t, func(t *testing.T, e *env) {
			held := e.HoldReply(zktest.On(zktest.OpCreate, e.d+"/"))
			ended := e.begin(patient(t), e.form(false))
			expect.Receive(t, "the create", held.Hit())
			e.twin(number)
			e.Disconnect()
			held.Release()
			got := expect.Receive(t, "Enter", ended)
			n := e.want(got.node, got.err)
			if number > 0 && len(n.Names) != 1 || !strings.HasSuffix(n.Path, "-0000000000") {
				t.Errorf("the node %s in %q", n.Path, n.Names)
			}
			if number > 0 {
				e.waitLeft(1)
				e.twin(98)
			}
			e.removes(n)
			e.waitLeft(0)
		})
	}
}

// A search for a create that finds nothing gives up its share of both watches, so the caller of Enter has the only one.
func TestSearchLeavesNoWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		n := e.form(false)
		n.Watch, n.Directory = true, true
		cut := e.CutBefore(zktest.On(zktest.OpCreate, e.d+"/"))
		node, err := e.s.Enter(t.Context(), n)
		must(t, err)
		<-cut.Hit()
		node.Children.Forget()
		node.Directory.Forget()
		synctest.Wait()
		if left := watched(t, e.Server); left != "0" {
			t.Errorf("%s watches are left", left)
		}
		e.removes(node)
	})
}

// A watch that Enter asks for is forgotten if Enter fails.
func TestEnterForgetsWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		e.others()
		before := watched(t, e.Server)
		wantErr(t, "Enter", expect.Err(e.s.Enter(t.Context(), e.form(true))), zk.ErrNodeExists)
		must(t, e.s.Sync(t.Context(), "/"))
		if after := watched(t, e.Server); after != before {
			t.Errorf("%s watches, %s before", after, before)
		}
	})
}

// An Enter whose create has an answer that settles nothing, and whose listing is under way when the manager is closed, says
// that the manager is closed. The answer to the create is no reason to try again.
func TestEnterEndsWithClose(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		inBubble(t, func(t *testing.T, e *env) {
			testserver.Switch(e.Server).Throttle(func(r zktest.Request) bool { return r.Op == zktest.OpCreate })
			listing := e.HoldReply(zktest.On(zktest.OpGetChildren2, e.d))
			got := e.begin(t.Context(), e.form(fixed))
			expect.Receive(t, "the answer to the listing", listing.Hit())
			synctest.Wait()
			go func() { _ = e.m.Close() }()
			wantErr(t, "Enter", expect.Receive(t, "Enter", got).err, session.ErrClosed)
			listing.Release()
		})
	}
}
