package session_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// On a new connection the deletes that are owed go before the requests of others, whether their answers were lost, or
// they began without a connection, with hooks and without. Cut tells that a removal waits for another connection.
func TestOwedDeletesGoFirst(t *testing.T) {
	const nodes = 10 // so many leave one by one
	for _, hooked := range []bool{false, true} {
		for _, how := range []string{"the request is lost", "the reply is lost", "no connection"} {
			t.Run(fmt.Sprintf("%s, hooked %v", how, hooked), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, told := zktest.Start(t), new(removals)
					var opts []session.Option
					if hooked {
						opts = append(opts, session.WithTrace(told.hooks()))
					}
					_, s := virtually(t, "h:1", srv.Dialer(), opts...)
					for i := range nodes {
						_, err := makeNode(t.Context(), s, fmt.Sprint("/n", i), nil)
						must(t, err)
					}
					synctest.Wait()
					isDelete := zktest.Any(zktest.OpDelete)
					switch how {
					case "the request is lost":
						srv.CutBefore(isDelete)
					case "the reply is lost":
						srv.CutAfterCommit(isDelete)
					case "no connection":
						srv.Refuse(true)
						srv.Disconnect()
						synctest.Wait()
					}
					var all []*session.Removal
					for i := range nodes {
						r := s.Remove(context.Background(), fmt.Sprint("/n", i))
						if how == "no connection" && !isClosed(r.Cut()) {
							t.Errorf("removal %d is not cut at its beginning", i)
						}
						all = append(all, r)
					}
					created := make(chan error, 1)
					srv.ResetRequests()
					if how != "no connection" {
						<-all[0].Cut()
						srv.ResetRequests()
					}
					go func() {
						_, err := makeNode(context.Background(), s, "/other", nil)
						created <- err
					}()
					srv.Refuse(false)
					must(t, <-created)
					for i, r := range all {
						within(t, r.Done(), "the removal")
						must(t, r.Err())
						if !isClosed(r.Cut()) {
							t.Errorf("removal %d is not cut", i)
						}
					}
					deletes := 0
					for _, r := range srv.Requests() {
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
}

// The answer to a removal is not cut while its connection lasts.
func TestRemovalNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, s := virtually(t, "h:1", srv.Dialer())
		_, err := makeNode(t.Context(), s, "/n", nil)
		must(t, err)
		r := s.Remove(t.Context(), "/n")
		<-r.Done()
		must(t, r.Err())
		if isClosed(r.Cut()) {
			t.Error("cut")
		}
		srv.Disconnect()
		<-r.Cut()
	})
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
