package wire

import (
	"bufio"
	"net"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Visit is a connection of its own that does one thing and ends. It sends the handshake, the
// identities and closeSession together, without waiting for answers. So it closes a session even
// if no answer gets through, and it never prolongs a session's life without ending it.
type Visit struct {
	Hello      codec.Hello
	Identities []codec.Identity // some servers refuse all requests without
}

// Outcome is the result of a visit.
type Outcome struct {
	Greeted  bool
	Greeting codec.Greeting
	Gone     bool // the server says that the session is gone
	Refused  bool // the server refused an identity, and all that follows it
}

const (
	visitXid   = 1
	visitFrame = 1 << 10 // no answer to a visit is as long
)

// Run makes the visit. It returns when the server has confirmed closeSession or the connection
// has ended. The caller must bound the time.
func (v Visit) Run(c net.Conn) (out Outcome) {
	all := v.Hello.Frame()
	for _, id := range v.Identities {
		all = append(all, id.Frame()...)
	}
	if _, err := c.Write(append(all, codec.CloseFrame(visitXid)...)); err != nil {
		return out
	}
	in := bufio.NewReader(c)
	for !out.Gone {
		frame, err := codec.ReadFrame(in, visitFrame)
		if err != nil || len(frame) < 4+codec.ReplyHeader || v.take(&out, frame[4:]) != nil {
			break
		}
	}
	return out
}

// take takes one frame from the server. The greeting says whether the session was still there.
// The answer to closeSession says that it is gone.
func (v Visit) take(out *Outcome, frame []byte) error {
	if out.Greeted {
		d := codec.Decoder{Rest: frame}
		xid, _, code := d.Int32(), d.Int64(), d.Int32()
		out.Gone = out.Gone || xid == visitXid && (code == codec.CodeOK || code == codec.CodeSessionExpired)
		out.Refused = out.Refused || xid == codec.XidAuth && code != codec.CodeOK
		return nil
	}
	g, err := codec.ParseGreeting(frame)
	if err == nil && v.Hello.Session != 0 && g.Session != 0 && g.Session != v.Hello.Session {
		err = Replaced(g.Session)
	}
	out.Greeting, out.Greeted, out.Gone = g, err == nil, err == nil && g.Session == 0
	return err
}
