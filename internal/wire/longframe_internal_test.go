package wire

import (
	"net"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// The memory of a long frame is not kept: not while nothing follows, and not with a connection that has ended.
func TestLongFrameIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.greet(t)
		b.Call(outbox.Call{Frame: callFrame(codec.OpGetData, "/a"), Done: func(outbox.Reply) {}})
		synctest.Wait()
		b.answer(t, replyFrame(1, codec.CodeOK, data(string(make([]byte, 16<<20)))...))
		if n := cap(b.body); n > keptBody {
			t.Errorf("%d bytes are kept", n)
		}
		b.answer(t, replyFrame(codec.XidEvent, 0, make([]byte, 16<<20)...)) // malformed
		<-b.over
		if n := cap(b.body); n > keptBody {
			t.Errorf("%d bytes are kept by a connection that has ended", n)
		}
		b.Cut(net.ErrClosed)
	})
}
