package wire

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// SASL proves to a server who the client is. Some servers refuse everything else before that, so it is part of the
// handshake, and proves nothing to the clock. The mechanism is the program's: it runs under no lock, on a goroutine
// that is left behind if the connection ends first. The connections of a manager share one SASL, so that few are
// left.
type SASL struct {
	Name  string
	Start func(ctx context.Context, host string) (x Exchange, first []byte, err error)

	running atomic.Int32
}

// Exchange is a session.SASLExchange.
type Exchange interface {
	Challenge(said []byte) (response []byte, done bool, err error)
}

// SASLError is why an exchange has failed while its connection stood.
type SASLError struct {
	Mechanism string
	Why       error
}

func (e *SASLError) Error() string { return fmt.Sprintf("SASL by %s: %v", e.Mechanism, e.Why) }
func (e *SASLError) Unwrap() error { return e.Why }

// proof is an exchange that has begun, or none.
type proof struct {
	Exchange
	*SASL
	next []byte
}

type step struct {
	Exchange
	say  []byte
	last bool
	err  error
}

func (s *SASL) call(ctx context.Context, f func() step) step {
	if s.running.Add(1) > mostDeaf {
		s.running.Add(-1)
		return step{err: fmt.Errorf("the mechanism has not returned from %d calls whose connections have ended", mostDeaf)}
	}
	done := make(chan step, 1)
	go func() {
		defer s.running.Add(-1)
		done <- f()
	}()
	select {
	case got := <-done:
		return got
	case <-ctx.Done():
		return step{err: context.Cause(ctx)}
	}
}

// begin begins an exchange, before anything is sent, so that no session is made in vain. Nobody refuses the client in
// that, so the error is no SASLError. s may be nil.
func (s *SASL) begin(ctx context.Context, host string, limit time.Duration) (proof, error) {
	if s == nil {
		return proof{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got := s.call(ctx, func() step {
		x, first, err := s.Start(ctx, host)
		return step{Exchange: x, say: first, err: err}
	})
	if got.err == nil && got.Exchange == nil {
		got.err = errors.New("the mechanism has begun nothing")
	}
	if got.err != nil {
		return proof{}, fmt.Errorf("SASL by %s: %w", s.Name, got.err)
	}
	return proof{got.Exchange, s, got.say}, nil
}

func (p proof) run(ctx context.Context, number func() int32, write func([]byte) error, read func() ([]byte, error)) error {
	if p.Exchange == nil {
		return nil
	}
	failed := func(why error) error { return &SASLError{p.Name, why} }
	for last, n := false, 0; n < mostSteps; n++ {
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
		got := p.call(ctx, func() step {
			say, last, err := p.Challenge(answer)
			return step{say: say, last: last, err: err}
		})
		switch p.next, last = got.say, got.last; {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case got.err != nil:
			return failed(got.err)
		case last && p.next == nil:
			return nil
		}
	}
	return failed(fmt.Errorf("no end after %d steps", mostSteps))
}
