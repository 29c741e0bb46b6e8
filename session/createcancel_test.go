package session_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// undoing is a create that is cancelled after the server has carried it out and before its reply
// comes.
type undoing struct {
	*zktest.Server
	s     *session.Session
	other *session.Session
	reply *zktest.Fault
	log   bytes.Buffer
}

func newUndoing(t *testing.T, opts ...session.Option) *undoing {
	t.Helper()
	u := &undoing{Server: zktest.Start(t)}
	opts = append(opts, session.WithLogger(slog.New(slog.NewTextHandler(&u.log, nil))))
	_, u.s = virtually(t, "h:1", u.Dialer(), opts...)
	_, u.other = virtually(t, "h:1", u.Dialer())
	must(t, (*core.Session)(u.s).MakeParents(t.Context(), "/d"))
	return u
}

// giveUp begins a create, and cancels it when its reply is held back.
func (u *undoing) giveUp(t *testing.T, path, data string, mode session.CreateMode) {
	t.Helper()
	u.reply = u.HoldReply(func(r zktest.Request) bool { return strings.HasPrefix(r.Path, path) && r.Op != zktest.OpSync })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, err := u.s.Create(ctx, path, []byte(data), mode)
		result <- err
	}()
	<-u.reply.Hit()
	cancel()
	wantErr(t, "create", <-result, context.Canceled)
}

// loseReply breaks the connections, so that the reply is lost.
func (u *undoing) loseReply() {
	u.Disconnect()
	u.reply.Release()
}

func (u *undoing) children(t *testing.T) []string {
	t.Helper()
	time.Sleep(time.Second)
	names, _, err := u.other.Children(t.Context(), "/d")
	must(t, err)
	slices.Sort(names)
	return names
}

var allModes = map[string]session.CreateMode{
	"persistent":            session.Persistent,
	"persistent sequential": session.PersistentSequential,
	"ephemeral":             session.Ephemeral,
	"ephemeral sequential":  session.EphemeralSequential,
	"container":             session.Container,
	"ttl":                   session.PersistentTTL(time.Hour),
}

// The node of a cancelled create is deleted when the reply comes. If the reply is lost, the node
// is deleted if it can be told from the nodes of other clients.
func TestCancelledCreateIsUndone(t *testing.T) {
	for name, mode := range allModes {
		for _, lost := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				u := newUndoing(t, session.WithMaxNodes(1))
				u.giveUp(t, "/d/n-", "x", mode)
				if lost {
					u.loseReply()
				} else {
					u.reply.Release()
				}
				ephemeral := strings.HasPrefix(name, "ephemeral")
				stays := lost && !ephemeral
				if left := u.children(t); len(left) > 0 != stays {
					t.Errorf("%s, reply lost %v: left are %v", name, lost, left)
				}
				synctest.Wait()
				if log := u.log.String(); stays != strings.Contains(log, "/d/n-") {
					t.Errorf("%s, reply lost %v: log %s", name, lost, log)
				}
				if _, err := u.s.Create(t.Context(), "/d/n-", nil, session.Ephemeral); !stays && err != nil {
					t.Errorf("%s, reply lost %v: the next: %v", name, lost, err)
				}
			})
		}
	}
}

// A node that is gone before its create could be undone does not count as a node of the session
// any more.
func TestUndoOfDeletedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUndoing(t, session.WithMaxNodes(1))
		u.giveUp(t, "/d/n", "x", session.Ephemeral)
		must(t, u.DeleteNode("/d/n"))
		u.reply.Release()
		u.children(t)
		_, err := u.s.Create(t.Context(), "/d/n", nil, session.Ephemeral)
		must(t, err)
	})
}

// A create that never reached the server leaves no node, and no node of another client is deleted
// for it.
func TestUndoLeavesOthersAlone(t *testing.T) {
	for _, mode := range []session.CreateMode{session.Ephemeral, session.EphemeralSequential} {
		synctest.Test(t, func(t *testing.T) {
			u := newUndoing(t)
			make := func(s *session.Session, path, data string, mode session.CreateMode) {
				_, err := s.Create(t.Context(), path, []byte(data), mode)
				must(t, err)
			}
			make(u.other, "/d/n-", "x", session.Ephemeral)           // at the very path
			make(u.other, "/d/n-", "x", session.EphemeralSequential) // like the node of the cancelled create
			make(u.other, "/d/n-0", "x", session.Ephemeral)
			make(u.s, "/d/n-", "x", session.EphemeralSequential) // of this session, and answered
			make(u.s, "/d/n-0000000009x", "x", session.Ephemeral)
			make(u.s, "/d/n-", "x", session.PersistentSequential)
			f := u.CutAfterCommit(zktest.On(zktest.OpCreate, "/d/n-"))
			_, err := u.s.Create(t.Context(), "/d/n-", []byte("y"), session.EphemeralSequential) // its caller gets that error
			if <-f.Hit(); !errors.Is(err, session.ErrUncertain) {
				t.Fatal(err)
			}
			before := u.children(t)
			f = u.CutBefore(zktest.On(zktest.OpCreate, "/d/n-"))
			ctx, cancel := context.WithCancel(t.Context())
			u.Delay(time.Millisecond)
			time.AfterFunc(500*time.Microsecond, cancel)
			_, err = u.s.Create(ctx, "/d/n-", []byte("x"), mode)
			wantErr(t, "create", err, context.Canceled)
			<-f.Hit()
			if after := u.children(t); !slices.Equal(before, after) {
				t.Errorf("%v, and before %v", after, before)
			}
		})
	}
}

// If several nodes look like the node of the create, only one is deleted. A node with other data
// stays.
func TestUndoDeletesOneOfEqualNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUndoing(t)
		for _, data := range []string{"y", "y", "x", "y"} { // their callers get the error of a lost reply, and may look for the nodes
			f := u.CutAfterCommit(zktest.On(zktest.OpCreate, "/d/n-"))
			_, err := u.s.Create(t.Context(), "/d/n-", []byte(data), session.EphemeralSequential)
			if !errors.Is(err, session.ErrUncertain) {
				t.Fatal(err)
			}
			<-f.Hit()
		}
		u.giveUp(t, "/d/n-", "x", session.EphemeralSequential)
		u.loseReply()
		left := u.children(t)
		var data []string
		for _, name := range left {
			got, _, err := u.other.Get(t.Context(), "/d/"+name)
			must(t, err)
			data = append(data, string(got))
		}
		slices.Sort(data)
		if !slices.Equal(data, []string{"x", "y", "y", "y"}) {
			t.Errorf("left are %v with %v", left, data)
		}
	})
}

// A caller that cancels a create and tries again has its own node in the end: the second create
// waits until nothing is left of the first.
func TestCreateAgainAfterGivingUp(t *testing.T) {
	for _, mode := range []session.CreateMode{session.Ephemeral, session.EphemeralSequential} {
		synctest.Test(t, func(t *testing.T) {
			u := newUndoing(t)
			u.giveUp(t, "/d/n-", "x", mode)
			u.Refuse(true)
			u.loseReply()
			synctest.Wait()
			type made struct {
				path string
				err  error
			}
			results := make(chan made)
			for range 2 {
				go func() {
					path, err := u.s.Create(t.Context(), "/d/n-", []byte("x"), mode)
					results <- made{path, err}
				}()
			}
			synctest.Wait()
			u.Heal()
			var got []string
			for range 2 {
				if r := <-results; r.err == nil {
					got = append(got, strings.TrimPrefix(r.path, "/d/"))
				} else if mode == session.EphemeralSequential || !errors.Is(r.err, zk.ErrNodeExists) {
					t.Error(r.err)
				}
			}
			slices.Sort(got)
			if left := u.children(t); !slices.Equal(left, got) || len(got) == 0 {
				t.Errorf("made %v, and there are %v", got, left)
			}
		})
	}
}

// The delete of such a node is not simply repeated. If its reply is lost and another client makes
// a node at the same path, that node stays.
func TestUndoDeletesNoLaterNode(t *testing.T) {
	for name, mode := range map[string]session.CreateMode{"persistent": session.Persistent, "ephemeral": session.Ephemeral} {
		synctest.Test(t, func(t *testing.T) {
			u := newUndoing(t)
			u.giveUp(t, "/d/n", "x", mode)
			f := u.CutAfterCommit(zktest.On(zktest.OpDelete, "/d/n"))
			u.reply.Release()
			<-f.Hit()
			_, err := u.other.Create(t.Context(), "/d/n", []byte("x"), mode)
			must(t, err)
			if left := u.children(t); len(left) != 1 {
				t.Errorf("%s: another's node was deleted", name)
			}
		})
	}
}

// A create that waits for the search for a node ends with its context, and with the session.
func TestCreateBehindASearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUndoing(t, session.WithTimeout(10*time.Second))
		u.giveUp(t, "/d/n", "x", session.Ephemeral)
		hold := u.HoldReply(zktest.On(zktest.OpGetData, "/d/n"))
		u.loseReply()
		<-hold.Hit()
		u.ResetRequests()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := u.s.Create(ctx, "/d/n", nil, session.Ephemeral)
		wantErr(t, "create", err, context.DeadlineExceeded)

		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := u.s.Create(t.Context(), "/d/n", nil, session.Ephemeral)
			if !errors.Is(err, session.ErrLost) {
				t.Error(err)
			}
		})
		synctest.Wait()
		if n := u.Count(zktest.On(zktest.OpCreate, "/d")); n != 0 {
			t.Errorf("%d creates were sent", n)
		}
		must(t, u.Expire(t.Context(), u.s.ID()))
		wg.Wait()
		hold.Release()
	})
}
