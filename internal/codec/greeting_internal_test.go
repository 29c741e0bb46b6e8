package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

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

// FuzzGreeting checks that what passes is what it says.
func FuzzGreeting(f *testing.F) {
	f.Add(greetingFrame(42, 6000)[4:])
	f.Add(greetingFrame(0, 0)[4:40])
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := ParseGreeting(b)
		switch {
		case err != nil:
			if !errors.Is(err, ErrBadFrame) {
				t.Error(err)
			}
		case !bytes.Equal(greetingFrame(g.Session, g.TimeoutMillis)[8:20], b[4:16]) || !bytes.Equal(g.Password[:], b[20:36]):
			t.Errorf("%x is taken for %+v", b, g)
		}
	})
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
		{"with one more byte", append(bytes.Clone(good), 0), false},
		{"no read-only flag, as from old servers", good[:36], true},
		{"cut short", good[:35], false},
		{"header only", good[:ReplyHeader], false},
		{"password too long", changed(19, 17), false},
		{"password of negative length", changed(16, 0xff), false},
		{"negative timeout", changed(4, 0x80), false},
		{"timeout zero", greetingFrame(42, 0)[4:], false},
		{"expired: the timeout is zero", greetingFrame(0, 0)[4:], true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := ParseGreeting(c.head)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrBadFrame) {
				t.Fatalf("got %v, want ok: %v", err, c.ok)
			}
			if c.ok && g.Session != 0 && (g.Session != 42 || g.TimeoutMillis != 4000 || string(g.Password[:]) != "0123456789abcdef") {
				t.Errorf("got %+v", g)
			}
		})
	}
}
