package session

import (
	"encoding/binary"
	"net"
	"testing"
	"time"
)

// BenchmarkClock is what an answer that counts, and each question whether a hold is certain,
// costs the lease clock.
func BenchmarkClock(b *testing.B) {
	start := time.Now()
	k := newClock(start)
	k.setLease(time.Hour)
	b.Run("confirm", func(b *testing.B) {
		b.ReportAllocs()
		for at := start; b.Loop(); at = at.Add(1) {
			k.confirm(at)
		}
	})
	b.Run("remaining", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if k.remaining(time.Now()) <= 0 {
				b.Fatal("run out")
			}
		}
	})
}

// quietEvents hears of everything and does nothing.
type quietEvents struct{ confirms int }

func (*quietEvents) greeted(greeting, time.Time) error { return nil }
func (e *quietEvents) confirmed(time.Time, proof)      { e.confirms++ }
func (*quietEvents) expired()                          {}
func (*quietEvents) sessionClosed()                    {}
func (*quietEvents) watchesArmed() bool                { return false }

// tape is a connection that takes everything and gives what is on it.
type tape struct {
	net.Conn
	next []byte
}

func (*tape) Write(b []byte) (int, error)      { return len(b), nil }
func (t *tape) Read(b []byte) (int, error)     { return copy(b, t.next), nil }
func (*tape) SetReadDeadline(time.Time) error  { return nil }
func (*tape) SetWriteDeadline(time.Time) error { return nil }
func (*tape) Close() error                     { return nil }

// BenchmarkWire is what the wrapper adds to one request that is sent and answered: one whose
// answer counts for the lease clock, and one whose does not.
func BenchmarkWire(b *testing.B) {
	for what, op := range map[string]int32{"create": opCreate, "getData": 4} {
		b.Run(what, func(b *testing.B) {
			conn, events := &tape{}, &quietEvents{}
			w := newWire(conn, events, time.Hour, func() time.Duration { return time.Hour })
			in := make([]byte, 64)
			exchange := func(request, reply []byte) {
				conn.next = reply
				if _, err := w.Write(request); err != nil {
					b.Fatal(err)
				}
				for got := 0; got < len(reply); {
					n, err := w.Read(in)
					if err != nil {
						b.Fatal(err)
					}
					got += n
				}
			}
			request := make([]byte, 100)
			binary.BigEndian.PutUint32(request, uint32(len(request)-4))
			exchange(request, greetingFrame(42, 6000))
			binary.BigEndian.PutUint32(request[4:], 7)
			binary.BigEndian.PutUint32(request[8:], uint32(op))
			reply := replyFrame(7, 0)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				exchange(request, reply)
				n++
			}
			if want := map[bool]int{true: n}[op == opCreate]; events.confirms != want {
				b.Errorf("%d of %d answers counted, want %d", events.confirms, n, want)
			}
		})
	}
}
