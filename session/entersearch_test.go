package session_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The reply to a create is lost, and the servers refuse the listing that would tell whether the node is there. Enter
// ends with that refusal or with its context, others of the session are not held up, those of the same name included,
// and Close returns.
func TestRefusedSearchEnds(t *testing.T) {
	for _, c := range []struct {
		name             string
		fixed, cancelled bool
	}{{"numbered", false, false}, {"numbered, cancelled", false, true}, {"fixed", true, false}, {"fixed, cancelled", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				_, founder := virtually(t, "h:1", srv.Dialer(), session.WithACL(zk.ACL{Perms: zk.PermCreate | zk.PermDelete, Scheme: "world", ID: "anyone"}))
				must(t, expect.Err(founder.Create(t.Context(), "/shut", nil, session.Persistent)))
				m, s := virtually(t, "h:1", srv.Dialer())
				f := srv.CutAfterCommit(zktest.On(zktest.OpCreate, "/shut/"))
				if c.cancelled {
					srv.Refuse(true)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				shut := session.NewNode{Dir: "/shut", Name: "n-", Fixed: c.fixed}
				ended := expect.Go(func() error { return expect.Err(s.Enter(ctx, shut)) })
				<-f.Hit()
				want := zk.ErrNoAuth
				if c.cancelled {
					time.Sleep(time.Second) //nolint:forbidigo // in a bubble
					cancel()
					want = context.Canceled
				}
				srv.Refuse(false)
				select {
				case err := <-ended:
					wantErr(t, "Enter", err, want)
				case <-time.After(10 * time.Second):
					t.Error("Enter has not ended after 10 s")
				}
				other, cancelOther := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancelOther()
				n, err := s.Enter(other, session.NewNode{Dir: "/open", Name: "n-"})
				must(t, err)
				must(t, gone(n.Remove(other)))
				wantErr(t, "another Enter there", expect.Err(s.Enter(other, shut)), zk.ErrNoAuth)
				began := time.Now()
				must(t, m.Close())
				if d := time.Since(began); d > time.Second {
					t.Errorf("Close took %v", d)
				}
			})
		})
	}
}

// When a connection breaks with 16 creates in doubt in one directory, one listing or two tell what became of all of them.
func TestManyDoubtsShareListings(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		const doubts = 16
		together := func(dir string) []error {
			var wg sync.WaitGroup
			all := make([]error, doubts)
			for i := range all {
				wg.Go(func() {
					_, all[i] = e.s.Enter(t.Context(), session.NewNode{Dir: dir, Name: "n-"})
				})
			}
			wg.Wait()
			return all
		}
		for _, before := range []string{"/a", "/b", "/c", "/d/e"} {
			must(t, errors.Join(together(before)...))
		}
		creates := zktest.On(zktest.OpCreate, "/d/")
		e.ResetRequests()
		held := e.HoldReply(creates)
		ended := expect.Go(func() error { return errors.Join(together("/d")...) })
		<-held.Hit()
		time.Sleep(time.Second)      //nolint:forbidigo // in a bubble
		inFlight := e.Count(creates) // all, if the window has room for them
		e.ResetRequests()
		e.Delay(10 * time.Millisecond) // the first search lasts until all have come to theirs
		e.Disconnect()
		must(t, <-ended)
		if n := e.Count(zktest.Any(zktest.OpGetChildren, zktest.OpGetChildren2)); n > 3 {
			t.Errorf("%d listings for %d doubts", n, inFlight)
		}
		if n := e.Count(creates); n > doubts-inFlight {
			t.Errorf("%d creates after %d were in doubt", n, inFlight)
		}
	})
}
