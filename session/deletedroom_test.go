package session_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A delete whose reply was lost with the connection leaves no node counted that is gone, in whichever way it was deleted, and
// whether the caller still waits.
func TestLostDeleteFreesRoom(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		for _, by := range []string{"Delete", "Multi", "Remove"} {
			t.Run(fmt.Sprintf("%s, cancelled %v", by, cancelled), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t)
					_, s := virtually(t, "h:1", srv.Dialer(), session.WithNodeLimits(1, 1<<20))
					node := enter(t, s, "/d/a")
					op := zktest.OpDelete
					if by == "Multi" {
						op = zktest.OpMulti
					}
					held := srv.HoldReply(zktest.On(op, node.Path))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					ended := make(chan error, 1)
					go func() { ended <- deletes(ctx, s, node, by) }()
					<-held.Hit()
					if cancelled {
						cancel()
						<-ended
					}
					srv.Disconnect()
					if !cancelled {
						<-ended // nil or ErrUncertain
					}
					must(t, s.Sync(t.Context(), "/"))
					time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble
					enter(t, s, "/d/b")
				})
			})
		}
	}
}
