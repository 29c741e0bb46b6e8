package wire

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// Err returns the first reason for which a connection ended. The errors that follow from it do not
// replace it.
func TestConnErr(t *testing.T) {
	cut := errors.New("cut by the session")
	for name, c := range map[string]struct {
		do   func(t *testing.T, b *bench)
		want error
	}{
		"not ended":      {func(*testing.T, *bench) {}, nil},
		"closed":         {func(_ *testing.T, b *bench) { b.Close() }, nil},
		"hung up":        {func(_ *testing.T, b *bench) { b.server.Close() }, io.EOF},
		"cut":            {func(_ *testing.T, b *bench) { b.Cut(cut) }, cut},
		"cut twice":      {func(_ *testing.T, b *bench) { b.Cut(cut); b.Cut(errors.New("again")) }, cut},
		"cut, hung up":   {func(_ *testing.T, b *bench) { b.Cut(cut); b.server.Close() }, cut},
		"bad frame":      {func(t *testing.T, b *bench) { b.answer(t, numbers(-7)) }, ErrBadFrame},
		"bad, then cut":  {func(t *testing.T, b *bench) { b.answer(t, numbers(-7)); b.Cut(cut) }, ErrBadFrame},
		"cut, then sent": {func(t *testing.T, b *bench) { b.Cut(cut); b.send(t, 1, OpSync) }, cut},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.greet(t)
			c.do(t, b)
			synctest.Wait()
			if err := b.Err(); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.send(t, 0, 0)
		go b.read()
		time.Sleep(time.Minute)
		if err := b.Err(); err != ErrSilent {
			t.Errorf("without a greeting: %v", err)
		}
	})
}
