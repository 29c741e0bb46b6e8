package ensemble

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
)

// hangsUp is a server that answers a request of n bytes if takes says so, and hangs up otherwise.
func hangsUp(takes func(n int) bool) Dial {
	return func(context.Context) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			var head [4]byte
			if _, err := io.ReadFull(server, head[:]); err != nil {
				return
			}
			n := int(binary.BigEndian.Uint32(head[:]))
			if !takes(n) {
				return
			}
			if _, err := io.CopyN(io.Discard, server, int64(n)); err == nil {
				_, _ = server.Write(make([]byte, 4)) // any frame
			}
		}()
		return client, nil
	}
}

func TestLongest(t *testing.T) {
	for _, limit := range []int{45, 46, 1000, 32768, usualRequest - 1, usualRequest, usualRequest + 1, 1 << 26} {
		asked := 0
		n, err := longest(t.Context(), hangsUp(func(n int) bool { asked++; return n <= limit }))
		if want := min(limit, usualRequest); n != want || err != nil || asked > 24 {
			t.Errorf("%d, %v, after %d handshakes; want %d", n, err, asked, want)
		}
	}
}

// A connection that is lost for another reason is not taken for a limit.
func TestLongestUnknown(t *testing.T) {
	if n, err := longest(t.Context(), hangsUp(func(int) bool { return false })); n != 0 || !errors.Is(err, errHangsUp) {
		t.Errorf("a server that takes nothing: %d, %v", n, err)
	}
	for lost := range 5 {
		asked := 0
		n, err := longest(t.Context(), hangsUp(func(int) bool { asked++; return asked != lost+3 && asked > 1 }))
		if n != 0 || !errors.Is(err, errUnclear) {
			t.Errorf("a server that hangs up at handshake %d: %d, %v", lost+3, n, err)
		}
	}
	refused := errors.New("refused")
	if _, err := longest(t.Context(), func(context.Context) (net.Conn, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("no server: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	silent := hangsUp(func(int) bool { cancel(); <-ctx.Done(); return true })
	if _, err := longest(ctx, silent); !errors.Is(err, context.Canceled) {
		t.Errorf("a server that is not waited for: %v", err)
	}
}
