package wire

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Err returns the first reason for which a connection ended, and Serve the same. The errors that follow from it do not
// replace it.
func TestConnErr(t *testing.T) {
	cut := errors.New("cut by the session")
	for name, c := range map[string]struct {
		do   func(t *testing.T, b *bench)
		want error
	}{
		"hung up":          {func(_ *testing.T, b *bench) { b.server.Close() }, io.EOF},
		"within a frame":   {func(t *testing.T, b *bench) { b.answer(t, numbers(20)); b.server.Close() }, io.ErrUnexpectedEOF},
		"cut":              {func(_ *testing.T, b *bench) { b.Cut(cut) }, cut},
		"cut twice":        {func(_ *testing.T, b *bench) { b.Cut(cut); b.Cut(errors.New("again")) }, cut},
		"cut, hung up":     {func(_ *testing.T, b *bench) { b.Cut(cut); b.server.Close() }, cut},
		"bad frame":        {func(t *testing.T, b *bench) { b.answer(t, numbers(-7)) }, codec.ErrBadFrame},
		"bad, then cut":    {func(t *testing.T, b *bench) { b.answer(t, numbers(-7)); b.Cut(cut) }, codec.ErrBadFrame},
		"bad event":        {func(t *testing.T, b *bench) { b.answer(t, eventFrame(9, "/")) }, codec.ErrBadFrame},
		"cut, then called": {func(_ *testing.T, b *bench) { b.Cut(cut); b.ask(codec.OpSync) }, cut},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.greet(t)
			if err := b.Err(); err != nil {
				t.Fatal(err)
			}
			c.do(t, b)
			if served := <-b.over; !errors.Is(b.Err(), c.want) || !errors.Is(served, c.want) {
				t.Errorf("%s: %v, and Serve returned %v; want %v", name, b.Err(), served, c.want)
			}
			hungUp := errors.Is(c.want, io.EOF) || errors.Is(c.want, io.ErrUnexpectedEOF)
			if b.hungUp.Load() != hungUp {
				t.Errorf("%s: the server has hung up: %v, want %v", name, b.hungUp.Load(), hungUp)
			}
		})
	}
}
