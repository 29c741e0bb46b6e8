package codec

import (
	"fmt"
	"time"
)

// Greeting is a server's answer to a [Hello].
type Greeting struct {
	TimeoutMillis int32
	Session       int64 // 0: the session has expired
	Password      [PasswordLength]byte
}

// Timeout is the session timeout that the server grants.
func (g Greeting) Timeout() time.Duration { return time.Duration(g.TimeoutMillis) * time.Millisecond }

// connectReply is the size of a greeting: version, timeout, session, password. Servers of 3.4 and later add whether they
// are read-only.
const connectReply = 36

// ParseGreeting takes a greeting without its length.
func ParseGreeting(frame []byte) (Greeting, error) {
	if len(frame) != connectReply && len(frame) != connectReply+1 {
		return Greeting{}, fmt.Errorf("%w: handshake of %d bytes", ErrBadFrame, len(frame))
	}
	d := Decoder{Rest: frame}
	d.Int32() // protocol version
	g := Greeting{TimeoutMillis: d.Int32(), Session: d.Int64()}
	if n := d.Int32(); n != PasswordLength {
		return Greeting{}, fmt.Errorf("%w: password of %d bytes", ErrBadFrame, n)
	}
	copy(g.Password[:], d.Bytes(PasswordLength))
	if g.Session != 0 && g.TimeoutMillis <= 0 {
		return Greeting{}, fmt.Errorf("%w: session timeout of %d ms", ErrBadFrame, g.TimeoutMillis)
	}
	return g, nil
}
