package clock

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// What a write proves is settled when it is sent. It counts neither from its own sending nor from its answer, which may take
// long: see lease.go. Half a tick is 1 s.
func TestAnswerProvesWhatItsRequestDid(t *testing.T) {
	hello := time.Now()
	at := func(s seconds) time.Time { return s.after(hello) }
	var l Link
	l.Begin(hello, at(0.1), 10*time.Second, time.Second, true)
	ping, sync := l.Sends(codec.XidPing, codec.OpPing, at(1)), l.Sends(1, codec.OpSync, at(2.2))
	l.Takes(ping, codec.CodeOK, at(1.1))
	l.Takes(sync, codec.CodeOK, at(2.3))
	write, later := l.Sends(2, codec.OpDelete, at(3)), l.Sends(codec.XidPing, codec.OpPing, at(4))
	l.Takes(later, codec.CodeOK, at(4.1))
	a, byLeader, _ := l.Takes(write, codec.CodeNoNode, at(8))
	if !byLeader || !a.Quorum || !a.Sent.Equal(at(3)) || !a.Touched.Equal(at(1)) {
		t.Errorf("by the leader: %v; of a quorum: %v; sent at %v, touched at %v: want 3 s and 1 s",
			byLeader, a.Quorum, a.Sent.Sub(hello), a.Touched.Sub(hello))
	}
}
