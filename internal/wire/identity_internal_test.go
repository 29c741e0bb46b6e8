package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// Identities are sent right behind the greeting, ahead of everything else, also if the greeting comes in pieces.
func TestIdentitiesComeFirst(t *testing.T) {
	for _, piece := range []int{100, 1} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Identity{"digest", []byte("a:1")}, Identity{"digest", []byte("b:2")})
			b.events.owns = true
			b.start(t)
			b.ask(OpSync)
			for piece := range slices.Chunk(greetingFrame(42, 6000), piece) {
				b.answer(t, piece)
			}
			var ops []int32
			for len(b.got) > 0 {
				ops = append(ops, (<-b.got)[1])
			}
			if diff := cmp.Diff([]int32{OpAuth, OpAuth, OpMulti, OpSync}, ops); diff != "" {
				t.Errorf("in pieces of %d (-want +got):\n%s", piece, diff)
			}
		})
	}
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
