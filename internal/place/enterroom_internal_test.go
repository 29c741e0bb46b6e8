package place

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A caller gives up when its node is there, and the listing is not. The room of the node is on its way from before the
// end of its reservation on: those that wait for it are judged again there.
func TestRoomOfEntrantThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
		m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(server.Dialer()), session.WithMaxNodes(1))
		expect.NoError(t, err)
		defer m.Close()
		s, err := m.Session(t.Context())
		expect.NoError(t, err)
		_, err = s.Create(t.Context(), "/mx", nil, session.Persistent)
		expect.NoError(t, err)
		q, err := New((*core.Manager)(m), "/mx")
		expect.NoError(t, err)
		r := Request{Kind: mutexKind}
		expect.NoError(t, r.complete())
		a := newAttempt(q, (*core.Session)(s), &r, &Entry{})
		ctx, cancel := context.WithCancel(t.Context())
		list := server.HoldReply(zktest.On(zktest.OpGetChildren2, "/mx"))
		entered := make(chan error, 1)
		go func() {
			_, err := a.enter(ctx)
			entered <- err
		}()
		<-list.Hit()
		synctest.Wait()
		cancel()
		if err := <-entered; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		reserved := make(chan error, 1)
		go func() {
			_, err := (*core.Session)(s).Reserve(t.Context(), core.Want{Nodes: 1, Bytes: 100})
			reserved <- err
		}()
		synctest.Wait()
		list.Release()
		a.leave(ctx, context.Canceled)
		expect.NoError(t, <-reserved)
	})
}
