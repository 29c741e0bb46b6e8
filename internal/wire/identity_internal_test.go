package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Identities are sent before zk.Conn has read the greeting, and so before everything that it
// sends. That is also true if the greeting comes in pieces. They are not sent to a server that
// greets with no session.
func TestIdentitiesComeFirst(t *testing.T) {
	for _, c := range []struct {
		name     string
		greeting []byte
		piece    int
		want     []int32
	}{
		{"at once", greetingFrame(42, 6000), 100, []int32{XidAuth, XidAuth, 1}},
		{"byte by byte", greetingFrame(42, 6000), 1, []int32{XidAuth, XidAuth, 1}},
		{"expired", greetingFrame(0, 0), 100, []int32{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.ids.list = []Identity{{"digest", []byte("a:1")}, {"digest", []byte("b:2")}}
				b.send(t, 0, 0)
				<-b.got
				go func() {
					for piece := range slices.Chunk(c.greeting, c.piece) {
						_, _ = b.server.Write(piece)
					}
				}()
				if _, err := io.ReadFull(b, make([]byte, len(c.greeting))); err != nil {
					t.Fatal(err)
				}
				b.send(t, 1, OpSync)
				if diff := cmp.Diff(c.want, b.arrived()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// If identities cannot be written, the connection ends and nothing hangs.
func TestIdentitiesUnwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe() // nobody reads at the other end
		defer far.Close()
		w := New(near, config(&fakeEvents{}))
		w.ids.list = []Identity{{"digest", []byte("a:1")}}
		cut := time.AfterFunc(3*time.Second, func() { w.Close() }) // the session would
		defer cut.Stop()
		go func() {
			_, _ = far.Read(make([]byte, 100))
			_, _ = far.Write(greetingFrame(42, 6000))
		}()
		(&bench{Conn: w}).send(t, 0, 0)
		start := time.Now()
		_, _ = io.ReadFull(w, make([]byte, len(greetingFrame(42, 6000))))
		if _, err := w.Read(make([]byte, 1)); err == nil || time.Since(start) > 4*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestIdentityAnswers(t *testing.T) {
	events := &fakeEvents{}
	p := identities{list: []Identity{{"digest", nil}, {"x509", nil}}}
	for _, c := range []struct {
		code  int32
		want  []string
		wrong bool
	}{
		{CodeOK, nil, false},
		{CodeAuthFailed, []string{"refused x509"}, false},
		{CodeOK, []string{"refused x509", "accepted"}, false},
		{CodeOK, []string{"refused x509", "accepted"}, true}, // nobody has asked
		{CodeAuthFailed, []string{"refused x509", "accepted"}, true},
	} {
		err := p.answer(c.code, events)
		if !slices.Equal(events.identities, c.want) || errors.Is(err, ErrBadFrame) != c.wrong {
			t.Fatalf("after %d: %q, %v; want %q", c.code, events.identities, err, c.want)
		}
	}
}

func TestAuthFrame(t *testing.T) {
	xid := int32(XidAuth)
	var want []byte
	for _, n := range []uint32{28, uint32(xid), OpAuth, 0, 6} {
		want = binary.BigEndian.AppendUint32(want, n)
	}
	want = append(append(want, "digest"...), 0, 0, 0, 2, 'u', ':')
	if got := AuthFrame("digest", []byte("u:")); !bytes.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
