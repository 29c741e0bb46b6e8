package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Of many calls that find one directory missing, one makes it, and the others wait for that. If its context ends, another makes
// the directory.
func TestDirectoryIsMadeOnce(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const calls = 100
			e, srv := virtualEntry(t)
			held := srv.HoldReply(zktest.On(zktest.OpCreateContainer, "/p/new/dir"))
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
			if n := srv.Count(zktest.Any(zktest.OpCreateContainer)); n > want+calls/10 { // a call can be late with what it has found
				t.Errorf("cancelled %v: %d creates of directories", cancelled, n)
			}
		})
	}
}

// A refusal to make a directory is told to all that wait for it.
func TestDirectoryIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 50
		srv := zktest.Start(t)
		_, founder := virtually(t, "h:1", srv.Dialer())
		_, err := founder.Multi(t.Context(), &zk.CreateRequest{Path: "/shut", Acl: zk.WorldACL(zk.PermRead)})
		must(t, err)
		_, s := virtually(t, "h:1", srv.Dialer())
		held := srv.HoldReply(zktest.Any(zktest.OpCreateContainer))
		results := make(chan error, calls)
		for range calls {
			go func() {
				_, err := s.Enter(t.Context(), session.NewNode{Dir: "/shut/dir", Name: "n-"})
				results <- err
			}()
		}
		<-held.Hit()
		synctest.Wait()
		held.Release()
		for range calls {
			if err := <-results; !errors.Is(err, zk.ErrNoAuth) {
				t.Error(err)
			}
		}
		if n := srv.Count(zktest.Any(zktest.OpCreateContainer)); n > 1+calls/10 {
			t.Errorf("%d creates of directories", n)
		}
	})
}
