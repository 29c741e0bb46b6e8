package session_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// limited returns a session with room for some nodes, below /d.
func limited(t *testing.T, nodes int, opts ...session.Option) (*zktest.Server, *session.Session) {
	t.Helper()
	srv := zktest.Start(t)
	_, s := virtually(t, "h:1", srv.Dialer(), append(opts, session.WithMaxNodes(nodes))...)
	must(t, (*core.Session)(s).MakeParents(t.Context(), "/d"))
	return srv, s
}

// wantRoom checks that a session has room for so many nodes, and for not one more.
func wantRoom(t *testing.T, s *session.Session, nodes int) {
	t.Helper()
	for i := range nodes {
		if _, err := s.Create(t.Context(), fmt.Sprint("/d/room", i), nil, session.Ephemeral); err != nil {
			t.Fatalf("create %d of %d: %v", i+1, nodes, err)
		}
	}
	_, err := s.Create(t.Context(), "/d/more", nil, session.Ephemeral)
	wantErr(t, fmt.Sprintf("one more than %d", nodes), err, session.ErrTooManyNodes)
}

// A create waits for the room of one that was cancelled at the same path. If the reply to that one is lost, its node is
// looked for all the same, although the search lets no other create of the path be sent.
func TestCreateWaitsForRoomOfItsPath(t *testing.T) {
	for name, mode := range map[string]session.CreateMode{"plain": session.Ephemeral, "sequential": session.EphemeralSequential} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUndoing(t, session.WithMaxNodes(1))
				u.giveUp(t, "/d/n", "old", mode)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				made := make(chan error, 1)
				go func() {
					_, err := u.s.Create(ctx, "/d/n", []byte("new"), mode)
					made <- err
				}()
				synctest.Wait()
				u.loseReply()
				must(t, <-made)
				if names := u.children(t); len(names) != 1 {
					t.Errorf("nodes %v", names)
				}
			})
		})
	}
}

// A multi that the server did not carry out is sent again, and takes its room again.
func TestMultiThrottledRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, s := limited(t, 2)
		for range 3 {
			again := false
			srv.Throttle(func(r zktest.Request) bool {
				first := r.Op == zktest.OpMulti && !again
				again = again || first
				return first
			})
			rs, err := s.Multi(t.Context(), &zk.CreateRequest{Path: "/d/n", Flags: zk.FlagEphemeral})
			must(t, err)
			if !again {
				t.Fatal("no multi was refused")
			}
			must(t, s.Delete(t.Context(), rs[0].String, -1))
		}
		wantRoom(t, s, 2)
	})
}

// What a multi deletes is free, also if its reply was lost, and if it has made the node itself.
func TestMultiDeletesRoom(t *testing.T) {
	create := func(path string) any { return &zk.CreateRequest{Path: path, Flags: zk.FlagEphemeral} }
	erase := func(path string) any { return &zk.DeleteRequest{Path: path, Version: -1} }
	for name, c := range map[string]struct {
		ops  []any
		left []string // of /d/a, and what the multi makes
	}{
		"deletes":                   {[]any{erase("/d/a")}, nil},
		"deletes and creates":       {[]any{erase("/d/a"), create("/d/b")}, []string{"b"}},
		"replaces":                  {[]any{erase("/d/a"), create("/d/a")}, []string{"a"}},
		"replaces and deletes":      {[]any{erase("/d/a"), create("/d/a"), erase("/d/a")}, nil},
		"creates and deletes":       {[]any{create("/d/b"), erase("/d/b")}, []string{"a"}},
		"creates, deletes, creates": {[]any{create("/d/b"), erase("/d/b"), create("/d/b")}, []string{"a", "b"}},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lost %v", name, lost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, s := limited(t, 4)
					_, err := s.Create(t.Context(), "/d/a", nil, session.Ephemeral)
					must(t, err)
					if lost {
						srv.CutAfterCommit(func(r zktest.Request) bool { return r.Op == zktest.OpMulti })
					}
					_, err = s.Multi(t.Context(), c.ops...)
					if lost {
						wantErr(t, "multi", err, zk.ErrConnectionClosed)
						time.Sleep(time.Second) // the session finds out what has become of the nodes
					} else {
						must(t, err)
					}
					names, _, err := s.Children(t.Context(), "/d")
					must(t, err)
					if slices.Sort(names); !slices.Equal(names, c.left) {
						t.Fatalf("nodes %q, want %q", names, c.left)
					}
					wantRoom(t, s, 4-len(c.left))
				})
			})
		}
	}
}

// The session finds the node of a create whose reply was lost. A delete that was sent before that does not know of it.
func TestDeleteWhileNodeIsLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, s := limited(t, 1)
		found := srv.HoldReply(zktest.On(zktest.OpGetData, "/d/n"))
		srv.CutAfterCommit(zktest.On(zktest.OpCreate, "/d/n"))
		_, err := s.Create(t.Context(), "/d/n", nil, session.Ephemeral)
		wantErr(t, "create", err, zk.ErrConnectionClosed)
		<-found.Hit()
		deleted := make(chan error, 1)
		go func() { deleted <- s.Delete(t.Context(), "/d/n", -1) }()
		synctest.Wait()
		found.Release()
		must(t, <-deleted)
		time.Sleep(time.Second) // the session looks again
		wantRoom(t, s, 1)
	})
}
