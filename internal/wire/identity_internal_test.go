package wire

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Identities are sent right behind the greeting, ahead of everything else, also if the greeting comes in pieces.
func TestIdentitiesComeFirst(t *testing.T) {
	for _, piece := range []int{100, 1} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, codec.Identity{Scheme: "digest", Credential: []byte("a:1")}, codec.Identity{Scheme: "digest", Credential: []byte("b:2")})
			b.events.owns = true
			b.start(t)
			b.ask(codec.OpSync)
			for piece := range slices.Chunk(greetingFrame(42, 6000), piece) {
				b.answer(t, piece)
			}
			var ops []int32
			for len(b.got) > 0 {
				ops = append(ops, (<-b.got)[1])
			}
			if diff := cmp.Diff([]int32{codec.OpAuth, codec.OpAuth, codec.OpMulti, codec.OpSync}, ops); diff != "" {
				t.Errorf("in pieces of %d (-want +got):\n%s", piece, diff)
			}
		})
	}
}

func TestIdentityAnswers(t *testing.T) {
	events := &fakeEvents{}
	p := identities{{Scheme: "digest"}, {Scheme: "x509"}}
	for _, c := range []struct {
		code  int32
		want  []string
		wrong bool
	}{
		{codec.CodeOK, nil, false},
		{codec.CodeAuthFailed, []string{"refused x509"}, false},
		{codec.CodeOK, []string{"refused x509", "accepted"}, false},
		{codec.CodeOK, []string{"refused x509", "accepted"}, true}, // nobody has asked
		{codec.CodeAuthFailed, []string{"refused x509", "accepted"}, true},
	} {
		err := p.answer(c.code, events)
		if !slices.Equal(events.identities, c.want) || errors.Is(err, codec.ErrBadFrame) != c.wrong {
			t.Fatalf("after %d: %q, %v; want %q", c.code, events.identities, err, c.want)
		}
	}
}
