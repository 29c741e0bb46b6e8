package wire

import (
	"bufio"
	"context"
	"errors"
	"net"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Visit is a connection of its own that closes a session. It sends the handshake, the identities and closeSession
// together: so it never prolongs a session's life without ending it. Only with SASL it has to wait for answers.
type Visit struct {
	Hello      codec.Hello
	Identities []codec.Identity // some servers refuse requests without
	SASL       *SASL
	Host       string
	Limit      time.Duration // for the begin of SASL, which is left out if it takes longer
}

// Outcome is the result of a visit.
type Outcome struct {
	Greeted  bool
	Greeting codec.Greeting
	Gone     bool
	Refused  bool // the server refused an identity, or SASL failed
}

const visitXid = 1

// Run makes the visit. It returns when the server has confirmed closeSession, or the connection or ctx has ended, and
// closes the connection.
func (v Visit) Run(ctx context.Context, c net.Conn) (out Outcome) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer func() {
		stop()
		cancel()
		c.Close()
	}()
	in := bufio.NewReader(c)
	read := func() ([]byte, error) {
		frame, err := codec.ReadFrame(in, visitFrame)
		if err == nil && len(frame) < 4+codec.ReplyHeader {
			err = codec.ErrBadFrame
		}
		if err != nil {
			return nil, err
		}
		return frame[4:], nil
	}
	write := func(b []byte) error { _, err := c.Write(b); return err }
	all := v.Hello.Frame()
	if p, err := v.SASL.begin(ctx, v.Host, v.Limit); err == nil && p.Exchange != nil {
		if write(all) != nil {
			return out
		}
		if frame, err := read(); err != nil || v.take(&out, frame) != nil || out.Gone {
			return out
		}
		if err := p.run(ctx, func() int32 { return visitXid }, write, read); err != nil {
			out.Refused = errors.As(err, new(*SASLError))
			return out
		}
		all = nil
	}
	for _, id := range v.Identities {
		all = append(all, id.Frame()...)
	}
	if write(append(all, codec.CloseFrame(visitXid)...)) != nil {
		return out
	}
	for !out.Gone {
		frame, err := read()
		if err != nil || v.take(&out, frame) != nil {
			break
		}
	}
	return out
}

// take takes one frame. The greeting, or the answer to closeSession, says that the session is gone.
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
