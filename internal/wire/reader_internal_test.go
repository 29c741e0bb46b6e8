package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// frameOf returns a frame of n bytes, length included, that begins with tag.
func frameOf(tag byte, n int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n-4))
	return append(b, bytes.Repeat([]byte{tag}, n-4)...)
}

// streamed is a connection that has such bytes to read, in pieces of a size.
type streamed struct {
	net.Conn
	rest []byte
	size int
}

func (c *streamed) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest[:min(c.size, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}
func (c *streamed) Close() error { return nil }

// framesOf returns the frames in a stream, and what ends them.
func framesOf(stream []byte, size int) (all [][]byte, err error) {
	w := New(&streamed{rest: stream, size: size}, config(&fakeEvents{}))
	for {
		f, err := w.frame()
		if err != nil {
			return all, err
		}
		all = append(all, bytes.Clone(f))
	}
}

// The frames are the same, in whatever pieces the stream comes.
func TestFrames(t *testing.T) {
	var stream []byte
	var want [][]byte
	for i, n := range []int{4 + codec.ReplyHeader, 200, readBuffer - 1, 4 + codec.ReplyHeader, readBuffer + 5, 3*keptBody + 1, 20} {
		f := frameOf(byte(i+1), n)
		stream = append(stream, f...)
		want = append(want, f[4:])
	}
	for _, size := range []int{1, 3, 7, 100, readBuffer, len(stream)} {
		got, err := framesOf(stream, size)
		if diff := cmp.Diff(want, got); diff != "" || err != io.EOF {
			t.Fatalf("pieces of %d bytes (-want +got): %v\n%s", size, err, diff)
		}
	}
	if got, err := framesOf(stream[:len(stream)-1], 100); len(got) != len(want)-1 || err != io.ErrUnexpectedEOF {
		t.Errorf("cut short: %d frames, %v", len(got), err)
	}
}

// A frame of an impossible length is refused. A possible one that does not come takes little memory.
func TestFrameLengths(t *testing.T) {
	for _, n := range []int64{-1, -1 << 31, 0, 1, codec.ReplyHeader - 1, codec.MaxFrame + 1, 1<<31 - 1} {
		stream := append(frameOf(1, 50), binary.BigEndian.AppendUint32(nil, uint32(n))...)
		if got, err := framesOf(stream, 100); len(got) != 1 || !errors.Is(err, codec.ErrBadFrame) {
			t.Errorf("length %d: %d frames, %v, want 1 and ErrBadFrame", n, len(got), err)
		}
	}
	longest := frameOf(7, 4+codec.MaxFrame)
	if got, err := framesOf(append(longest, frameOf(2, 20)...), 1<<20); len(got) != 2 || len(got[0]) != codec.MaxFrame || err != io.EOF {
		t.Errorf("after the longest frame: %d frames, %v", len(got), err)
	}
	w := New(&streamed{rest: longest[:100], size: 100}, config(&fakeEvents{}))
	if _, err := w.frame(); err != io.ErrUnexpectedEOF {
		t.Errorf("100 bytes of a long frame: %v", err)
	}
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w := New(&streamed{rest: longest[:100], size: 100}, config(&fakeEvents{}))
			_, _ = w.frame()
		}
	}).AllocedBytesPerOp()
	if allocated > 64<<10 {
		t.Errorf("100 bytes of a frame of %d take %d bytes of memory", codec.MaxFrame, allocated)
	}
}

// FuzzFrames checks that the pieces do not matter, and that what a server sends causes no panic.
func FuzzFrames(f *testing.F) {
	f.Add(frameOf(1, 50), 3)
	f.Add([]byte{0, 0, 0, 1, 2}, 1)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, 2)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		a, errA := framesOf(stream, len(stream)+1)
		b, errB := framesOf(stream, min(max(size, 1), 1<<20))
		if !cmp.Equal(a, b) || !errors.Is(errA, errB) && errA.Error() != errB.Error() {
			t.Fatalf("whole: %x %v; in pieces: %x %v", a, errA, b, errB)
		}
	})
}
