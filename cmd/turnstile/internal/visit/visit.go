package visit

import (
	"bufio"
	"context"
	"errors"
	"net"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// Visit is a connection of its own that closes the session that it asks for. It sends the handshake, the identities and
// the request to close together, without waiting for answers. So it closes a session even if no answer gets through, and it
// never prolongs a session's life without ending it. With SASL it has to wait for the answers of that exchange.
type Visit struct {
	Hello      Hello
	Identities []Identity            // some servers refuse all requests without
	SASL       session.SASLMechanism // the same; nil: none
}

// Outcome is the result of a visit.
type Outcome struct {
	Greeted bool
	Timeout time.Duration // that the server grants
	Gone    bool          // the server says that the session is gone
	Refused bool          // the server refused an identity, or SASL has failed: and all that follows it
}

// longestAnswer bounds an answer to a visit.
const longestAnswer = 64 << 10

// Run makes the visit. It returns when the server has confirmed that the session is closed, or the connection has
// ended. The caller has to bound the time.
func (v Visit) Run(c net.Conn) (out Outcome) {
	in := bufio.NewReader(c)
	send := v.Hello.Frame()
	if v.SASL != nil {
		if _, err := c.Write(send); err != nil || v.takeGreeting(in, &out) != nil || out.Gone {
			return out
		}
		if err := v.prove(c, in); err != nil {
			out.Refused = errors.Is(err, errRefused)
			return out
		}
		send = nil
	}
	for _, i := range v.Identities {
		send = append(send, i.frame()...)
	}
	if _, err := c.Write(append(send, closeFrame()...)); err != nil {
		return out
	}
	if !out.Greeted && v.takeGreeting(in, &out) != nil {
		return out
	}
	for !out.Gone {
		a, err := readAnswer(in)
		if err != nil {
			break
		}
		out.Gone = a.number == numberOfVisit && (a.code == codeOK || a.code == codeSessionExpired)
		out.Refused = out.Refused || a.number == numberOfAuth && a.code != codeOK
	}
	return out
}

// takeGreeting reads the server's answer to the handshake, which says whether the session was still there.
func (v Visit) takeGreeting(in *bufio.Reader, out *Outcome) error {
	b, err := ReadFrame(in, longestAnswer)
	if err != nil {
		return err
	}
	g, err := parseGreeting(b)
	if err == nil && v.Hello.Session != 0 && g.session != 0 && g.session != v.Hello.Session {
		err = errors.New("another session answers")
	}
	if err == nil {
		out.Greeted, out.Timeout, out.Gone = true, g.timeout, g.session == 0
	}
	return err
}

// errRefused says that an exchange of SASL has failed, on either side.
var errRefused = errors.New("SASL has failed")

// mostSteps bounds the steps of an exchange. Mechanisms have three at most.
const mostSteps = 20

// prove makes the exchange of SASL.
func (v Visit) prove(c net.Conn, in *bufio.Reader) error {
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	x, next, err := v.SASL.Start(context.Background(), host)
	if err != nil {
		return errors.Join(errRefused, err)
	}
	for last, step := false, 0; step < mostSteps; step++ {
		if _, err := c.Write(saslFrame(next)); err != nil {
			return err
		}
		a, err := readAnswer(in)
		switch {
		case err != nil:
			return err
		case a.code != codeOK:
			return errRefused
		case last:
			return nil
		}
		said, err := a.token()
		if err != nil {
			return err
		}
		if next, last, err = x.Challenge(said); err != nil {
			return errors.Join(errRefused, err)
		}
		if last && next == nil {
			return nil
		}
	}
	return errRefused
}

func readAnswer(in *bufio.Reader) (answer, error) {
	b, err := ReadFrame(in, longestAnswer)
	if err != nil {
		return answer{}, err
	}
	return parseAnswer(b)
}
