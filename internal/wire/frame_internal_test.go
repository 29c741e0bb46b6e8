package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frameOf returns a frame of n bytes, length included, that begins with tag.
func frameOf(tag byte, n int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n-4))
	return append(b, bytes.Repeat([]byte{tag}, n-4)...)
}

// headsOf returns the heads of the frames in a stream. It checks that each frame is whole before the next
// begins, and with its last byte.
func headsOf(t *testing.T, chunks ...[]byte) [][]byte {
	t.Helper()
	var f frames
	var heads [][]byte
	whole, size, end := 0, 0, 0
	check := func() {
		t.Helper()
		if at := size == end; whole != len(heads) && (whole != len(heads)-1 || at) {
			t.Fatalf("%d of %d frames are whole", whole, len(heads))
		}
	}
	for _, c := range chunks {
		size += len(c)
		err := f.feed(c, func(h []byte) ([]field, error) {
			if whole != len(heads) {
				t.Fatalf("frame %d begins when %d are whole", len(heads), whole)
			}
			heads = append(heads, bytes.Clone(h))
			end += 4 + f.length()
			return nil, nil
		}, func() {
			if whole++; size < end {
				t.Fatalf("frame %d is whole at byte %d of %d", whole, size, end)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		check()
	}
	return heads
}

// The frames are the same, in whatever pieces the stream comes.
func TestFramesChunking(t *testing.T) {
	sizes := []int{4 + replyHeader, 4 + connectReply, 4 + frameHead - 1, 4 + frameHead, 4 + frameHead + 1, 200, 4 + replyHeader}
	var stream []byte
	var want [][]byte
	for i, n := range sizes {
		f := frameOf(byte(i+1), n)
		stream = append(stream, f...)
		want = append(want, f[4:min(n, 4+frameHead)])
	}
	for size := 1; size <= len(stream); size++ {
		var chunks [][]byte
		for rest := stream; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			chunks = append(chunks, rest[:min(size, len(rest))])
		}
		if diff := cmp.Diff(want, headsOf(t, chunks...)); diff != "" {
			t.Fatalf("pieces of %d bytes (-want +got):\n%s", size, diff)
		}
	}
	for cut := range stream {
		if diff := cmp.Diff(want, headsOf(t, stream[:cut], nil, stream[cut:])); diff != "" {
			t.Fatalf("cut at %d (-want +got):\n%s", cut, diff)
		}
	}
}

// An impossible length is refused with its last byte, because the reader makes room for a frame
// of that length before it reads on.
func TestFramesBadLength(t *testing.T) {
	for _, n := range []int64{-1, -1 << 31, 0, 1, replyHeader - 1, MaxFrame + 1, 1<<31 - 1} {
		stream := append(frameOf(1, 50), binary.BigEndian.AppendUint32(nil, uint32(n))...)
		for cut := range stream {
			var f frames
			ok := func([]byte) ([]field, error) { return nil, nil }
			err := f.feed(stream[:cut], ok, func() {})
			if err != nil {
				t.Fatalf("length %d: refused %d bytes too early", n, len(stream)-cut)
			}
			if err := f.feed(stream[cut:], ok, func() {}); !errors.Is(err, ErrBadFrame) {
				t.Errorf("length %d, cut at %d: %v, want ErrBadFrame", n, cut, err)
			}
		}
	}
	if h := headsOf(t, binary.BigEndian.AppendUint32(nil, MaxFrame), make([]byte, MaxFrame), frameOf(2, 20)); len(h) != 2 {
		t.Errorf("after the largest frame: %d frames, want 2", len(h))
	}
}

func TestFramesHeadError(t *testing.T) {
	var f frames
	want := errors.New("enough")
	if err := f.feed(frameOf(1, 50), func([]byte) ([]field, error) { return nil, want }, func() { t.Error("a refused frame is whole") }); err != want {
		t.Errorf("got %v", err)
	}
}

// FuzzFrames checks that there is no panic and no memory beyond the head, and that the pieces do
// not matter.
func FuzzFrames(f *testing.F) {
	f.Add(frameOf(1, 50), 3)
	f.Add([]byte{0, 0, 0, 1, 2}, 1)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, 2)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		if cut < 0 || cut > len(stream) {
			return
		}
		scan := func(chunks ...[]byte) (heads [][]byte, err error) {
			var f frames
			for _, c := range chunks {
				err = f.feed(c, func(h []byte) ([]field, error) {
					if len(h) < replyHeader || len(h) > frameHead {
						t.Fatalf("head of %d bytes", len(h))
					}
					_, _ = parseGreeting(h)
					heads = append(heads, bytes.Clone(h))
					return bodyOf(int32(h[0])), nil
				}, func() { heads = append(heads, nil) })
				if err != nil {
					return heads, err
				}
			}
			return heads, nil
		}
		a, errA := scan(stream)
		b, errB := scan(stream[:cut], stream[cut:])
		if !cmp.Equal(a, b) || (errA == nil) != (errB == nil) {
			t.Fatalf("whole: %x %v; in two: %x %v", a, errA, b, errB)
		}
	})
}

// greetingFrame is the answer of a server to a handshake.
func greetingFrame(session int64, timeoutMillis int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, 37)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(timeoutMillis))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, PasswordLength)
	b = append(b, "0123456789abcdef"...)
	return append(b, 0) // read-only: no
}

func TestParseGreeting(t *testing.T) {
	good := greetingFrame(42, 4000)[4:]
	changed := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for _, c := range []struct {
		name string
		head []byte
		ok   bool
	}{
		{"good", good, true},
		{"no read-only flag, as from old servers", good[:36], true},
		{"cut short", good[:35], false},
		{"header only", good[:replyHeader], false},
		{"password too long", changed(19, 17), false},
		{"password of negative length", changed(16, 0xff), false},
		{"negative timeout", changed(4, 0x80), false},
		{"timeout zero", greetingFrame(42, 0)[4:], false},
		{"expired: the timeout is zero", greetingFrame(0, 0)[4:], true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := parseGreeting(c.head)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrBadFrame) {
				t.Fatalf("got %v, want ok: %v", err, c.ok)
			}
			if c.ok && g.Session != 0 && (g.Session != 42 || g.TimeoutMillis != 4000 || string(g.Password[:]) != "0123456789abcdef") {
				t.Errorf("got %+v", g)
			}
		})
	}
}
