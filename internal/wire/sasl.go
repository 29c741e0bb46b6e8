package wire

import (
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// SASL proves to a server who the client is, right behind the greeting and ahead of all else. Some servers refuse all
// other requests before that, heartbeats too. So it is a part of the handshake, and the clock takes nothing from its
// answers.
type SASL struct {
	Name  string                                                          // of the mechanism
	Start func(limit time.Duration) (x Exchange, first []byte, err error) // it returns within the limit
}

// Exchange is one exchange with a server. See session.SASLExchange.
type Exchange interface {
	Challenge(said []byte) (response []byte, done bool, err error)
}

// SASLError is why an exchange has failed, other than by the loss of its connection.
type SASLError struct {
	Mechanism string
	Why       error
}

func (e *SASLError) Error() string { return fmt.Sprintf("SASL by %s: %v", e.Mechanism, e.Why) }
func (e *SASLError) Unwrap() error { return e.Why }

// mostSteps bounds the steps of an exchange. Mechanisms have three at most.
const mostSteps = 20

// proof is an exchange that has begun. Without one, Exchange is nil.
type proof struct {
	Exchange
	mechanism string
	next      []byte // what to say next
}

// begin begins an exchange, before anything is sent: if that fails, no server has made a session in vain. s may be nil.
func (s *SASL) begin(limit time.Duration) (proof, error) {
	if s == nil {
		return proof{}, nil
	}
	x, first, err := s.Start(limit)
	if err == nil && x == nil {
		err = errors.New("the mechanism has begun nothing")
	}
	if err != nil {
		return proof{}, &SASLError{s.Name, err}
	}
	return proof{x, s.Name, first}, nil
}

// run makes the exchange, in frames with the numbers that number returns.
func (p proof) run(number func() int32, write func([]byte) error, read func() ([]byte, error)) error {
	failed := func(why error) error { return &SASLError{p.mechanism, why} }
	for last, step := false, 0; step < mostSteps; step++ {
		xid := number()
		if err := write(codec.SASLFrame(xid, p.next)); err != nil {
			return err
		}
		frame, err := read()
		if err != nil {
			return err
		}
		answer, code, err := codec.ParseSASLAnswer(frame, xid)
		switch {
		case err != nil:
			return err
		case code != codec.CodeOK:
			return failed(fmt.Errorf("the server refuses the client (code %d)", code))
		case last:
			return nil
		}
		p.next, last, err = p.Challenge(answer)
		switch {
		case err != nil:
			return failed(err)
		case last && p.next == nil:
			return nil
		}
	}
	return failed(fmt.Errorf("no end after %d steps", mostSteps))
}

// prove makes the exchange on the connection. If it fails, the session is told why.
func (w *Conn) prove(p proof) error {
	if p.Exchange == nil {
		return nil
	}
	err := p.run(w.out.Number, w.write, w.frame)
	if why := (*SASLError)(nil); errors.As(err, &why) {
		w.cfg.Events.Refused("sasl", why)
	}
	return err
}
