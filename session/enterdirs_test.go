package session_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A directory that is missing is made, with those above it. If it vanishes again at any moment, it is made again.
func TestEnterMakesDirectories(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		inBubble(t, func(t *testing.T, e *env) {
			e.d = "/p/a/b/c"
			for round := range 3 {
				node, err := e.s.Enter(t.Context(), e.form(fixed))
				e.want(node, err)
				e.removes(node)
				switch round {
				case 0: // all is there
				case 1:
					must(t, e.DeleteNode("/p/a/b/c"))
				case 2:
					must(t, e.DeleteNode("/p/a/b/c"))
					must(t, e.DeleteNode("/p/a/b"))
				}
			}
			for _, at := range []zktest.Match{
				zktest.On(zktest.OpCreate, e.d+"/"), zktest.On(zktest.OpGetChildren2, e.d), zktest.On(zktest.OpCreateContainer, e.d),
				behind(zktest.On(zktest.OpCreateContainer, e.d), zktest.On(zktest.OpCreate, e.d+"/")),
			} {
				for range 2 { // also while it is gone already
					held := e.HoldRequest(at)
					ended := e.begin(t.Context(), e.form(fixed))
					synctest.Wait()
					if isClosed(held.Hit()) {
						for _, dir := range []string{e.d, path.Dir(e.d)} {
							if stat, err := e.other.Exists(t.Context(), dir); err == nil && stat != nil && stat.NumChildren == 0 {
								must(t, e.DeleteNode(dir))
							}
						}
					}
					held.Release()
					got := <-ended
					e.removes(e.want(got.node, got.err))
					must(t, e.DeleteNode(e.d))
				}
			}
		})
	}
}

// A directory that was made in vain is given back, also if the reply to its create was lost: no server before 3.10
// removes a container that never had a child.
func TestEnterGivesDirectoryBack(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		for what, arm := range map[string]func(e *env) *zktest.Fault{
			"the next create is cut": func(e *env) *zktest.Fault {
				return e.HoldRequest(behind(zktest.On(zktest.OpCreateContainer, e.d), zktest.On(zktest.OpCreate, e.d+"/")))
			},
			"its reply is held": func(e *env) *zktest.Fault { return e.HoldReply(zktest.On(zktest.OpCreateContainer, e.d)) },
			"its reply was lost": func(e *env) *zktest.Fault {
				e.CutAfterCommit(zktest.On(zktest.OpCreateContainer, e.d))
				return e.HoldRequest(behind(zktest.On(zktest.OpCreateContainer, e.d), zktest.On(zktest.OpCreate, e.d+"/")))
			},
		} {
			inBubble(t, func(t *testing.T, e *env) {
				node, err := e.s.Enter(t.Context(), session.NewNode{Dir: e.d, Name: "keeps", Fixed: true}) // the manager knows containers
				e.want(node, err)
				e.d += "/new"
				held := arm(e)
				ctx, cancel := context.WithCancel(t.Context())
				ended := e.begin(ctx, e.form(fixed))
				<-held.Hit()
				cancel()
				wantErr(t, what, (<-ended).err, context.Canceled)
				e.Disconnect()
				held.Release()
				time.Sleep(3 * e.s.Timeout()) //nolint:forbidigo // in a bubble
				stat, err := e.other.Exists(t.Context(), e.d)
				if must(t, err); stat != nil {
					t.Errorf("%s, fixed %v: the directory is there", what, fixed)
				}
				if fixed { // Create gives it back too, if nobody knows whether the node was made
					e.CutBefore(behind(zktest.On(zktest.OpCreateContainer, e.d), zktest.On(zktest.OpCreate, e.d+"/")))
					_, err := e.s.Create(t.Context(), e.d+"/n", nil, session.Persistent)
					wantErr(t, "Create", err, session.ErrUncertain)
					time.Sleep(3 * e.s.Timeout()) //nolint:forbidigo // in a bubble
					stat, err := e.other.Exists(t.Context(), e.d)
					if must(t, err); stat != nil {
						t.Error("the directory is there after Create")
					}
				}
				must(t, e.s.Err())
			})
		}
	}
}

// Enter undoes a create that gets the last number or one below zero, and counting starts again when the directory is empty.
func TestEnterAtEndOfCounter(t *testing.T) {
	for _, lost := range []bool{false, true} {
		inBubble(t, func(t *testing.T, e *env) {
			n := session.NewNode{Dir: e.d, Name: "lock-"}
			must(t, testserver.Switch(e.Server).SetSequence(e.d, 1<<31-2))
			last, err := e.s.Enter(t.Context(), n)
			e.want(last, err)
			for range 3 { // 2147483647, -2147483648, …
				if lost {
					e.CutAfterCommit(zktest.On(zktest.OpCreate, e.d+"/"))
				}
				wantErr(t, "Enter", expect.Err(e.s.Enter(t.Context(), n)), session.ErrSequence)
				time.Sleep(time.Second) //nolint:forbidigo // in a bubble
				if left := e.left(); len(left) != 1 {
					t.Errorf("left are %q", left)
				}
			}
			fixed, err := e.s.Enter(t.Context(), e.form(true)) // that needs no number
			e.want(fixed, err)
			e.removes(fixed)
			e.removes(last)
			wantErr(t, "Enter", expect.Err(e.s.Enter(t.Context(), n)), session.ErrSequence)
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			first, err := e.s.Enter(t.Context(), n)
			if e.want(first, err); !strings.HasSuffix(first.Path, "-0000000000") {
				t.Errorf("the first node is %s", first.Path)
			}
		})
	}
}

// An Enter that has no room fails at once, and sends nothing. The room of a node that is being removed counts. Nodes have room,
// and the bytes of their paths.
func TestEnterWithoutRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		var all []*session.Node
		for i := range 2 {
			n, err := e.s.Enter(patient(t), e.form(i == 0))
			all = append(all, e.want(n, err))
		}
		e.ResetRequests()
		wantErr(t, "Enter", expect.Err(e.s.Enter(patient(t), e.form(false))), session.ErrTooManyNodes)
		expect.Requests(t, "creates without room", e.Server, zktest.Any(zktest.OpCreate), 0)
		for _, n := range all {
			n.Remove(patient(t))
			next, err := e.s.Enter(patient(t), e.form(false))
			e.want(next, err)
		}
		e.waitLeft(2)
	}, session.WithNodeLimits(2, 1<<20))
	inBubble(t, func(t *testing.T, e *env) {
		enter(t, e.s, e.d+"/a")
		_, err := e.s.Enter(t.Context(), session.NewNode{Dir: e.d, Name: "longer", Fixed: true})
		wantErr(t, "Enter with a path that is too long", err, session.ErrTooManyNodes)
		enter(t, e.s, e.d+"/b")
	}, session.WithNodeLimits(100, 2*(4+len("/p/d/a"))))
}

// If somebody deletes the node before the listing shows it, Enter makes another, also if the reply to that create is lost.
func TestEnterAfterDelete(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			inBubble(t, func(t *testing.T, e *env) {
				held := e.HoldRequest(zktest.On(zktest.OpGetChildren2, e.d))
				ended := e.begin(t.Context(), e.form(fixed))
				<-held.Hit()
				for _, name := range e.left() {
					must(t, e.DeleteNode(e.d+"/"+name))
				}
				hit := held.Hit()
				if synctest.Wait(); lost { // the reply to the first create has come
					hit = e.CutAfterCommit(zktest.On(zktest.OpCreate, e.d+"/")).Hit()
				}
				held.Release()
				<-hit
				got := <-ended
				e.want(got.node, got.err)
				if left := e.left(); len(left) != 1 {
					t.Errorf("left are %q", left)
				}
				e.removes(got.node)
				e.waitLeft(0)
				e.removes(e.whenRoom(e.form(fixed)))
			}, session.WithNodeLimits(1, 1<<20))
		}
	}
}

// What cannot be a node is refused before anything is sent.
func TestEnterInvalid(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		e.ResetRequests()
		for i, n := range []session.NewNode{
			{}, {Dir: "p", Name: "a"}, {Dir: "/p/", Name: "a"}, {Dir: "/p", Name: "a/b"},
			{Dir: "/p", Fixed: true}, {Dir: "/p", Name: "..", Fixed: true},
			{Dir: "/p", Name: "a/b", Fixed: true}, {Dir: "/p", Name: "a\x00"}, {Dir: "/p", Name: "a", Data: make([]byte, 1<<20)},
		} {
			wantErr(t, fmt.Sprint("node ", i), expect.Err(e.s.Enter(t.Context(), n)), session.ErrInvalid)
		}
		expect.Requests(t, "bad nodes", e.Server, zktest.Any(zktest.OpCreate, zktest.OpGetChildren2), 0)
	})
}

// Of many calls that find one directory missing, one makes it, and the others wait for that. If its context ends, another makes
// the directory.
func TestDirectoryIsMadeOnce(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		inBubble(t, func(t *testing.T, e *env) {
			const calls = 50          // fit the window
			e.Delay(time.Millisecond) // so all calls are on their way before the directory is made
			held := e.HoldReply(zktest.On(zktest.OpCreateContainer, "/p/new/dir"))
			first, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := e.begin(first, session.NewNode{Dir: "/p/new/dir", Name: "n-"})
			<-held.Hit()
			var wg sync.WaitGroup
			for i := range calls {
				wg.Go(func() {
					var err error
					if i%2 == 0 {
						_, err = e.s.Enter(t.Context(), session.NewNode{Dir: "/p/new/dir", Name: "n-"})
					} else {
						_, err = e.s.Create(t.Context(), fmt.Sprint("/p/new/dir/", i), nil, session.Persistent)
					}
					must(t, err)
				})
			}
			short, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			_, err := e.s.Create(short, "/p/new/dir/short", nil, session.Persistent)
			wantErr(t, "a call that waits", err, context.DeadlineExceeded)
			want := 3 // of the leaf, of its parent, of the leaf
			if cancelled {
				cancel()
				want++
			}
			held.Release()
			if got := <-ended; (got.err == nil) == cancelled {
				t.Errorf("the first: %v", got.err)
			}
			wg.Wait()
			if n := e.Count(zktest.On(zktest.OpCreateContainer, "/p/new")); n > want {
				t.Errorf("cancelled %v: %d creates of directories", cancelled, n)
			}
		})
	}
}
