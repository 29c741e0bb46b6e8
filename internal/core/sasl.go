package core

import (
	"context"
	"errors"
	"time"

	"github.com/turnstile-go/turnstile/internal/callout"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// Exchange is one exchange with one server: see session.SASLExchange.
type Exchange = wire.Exchange

// SASL is a mechanism of the user: see session.SASLMechanism.
type SASL struct {
	Name  string
	Start func(ctx context.Context, host string) (x Exchange, first []byte, err error)
}

// sasl returns the mechanism for one connection. It guards the functions of the user, and ctx ends them.
func (c *Config) sasl(ctx context.Context, host string) *wire.SASL {
	if c.SASL == nil {
		return nil
	}
	return &wire.SASL{Name: c.SASL.Name, Start: func(limit time.Duration) (x Exchange, first []byte, err error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if !callout.Guarded(func() { x, first, err = c.SASL.Start(ctx, host) }) {
			return nil, nil, errSASLGoexit
		}
		if x == nil || err != nil {
			return nil, nil, err
		}
		return guardedExchange{x}, first, nil
	}}
}

var errSASLGoexit = errors.New("the mechanism has called runtime.Goexit")

// guardedExchange is an exchange whose functions may end their goroutine.
type guardedExchange struct{ users Exchange }

func (g guardedExchange) Challenge(said []byte) (response []byte, done bool, err error) {
	if !callout.Guarded(func() { response, done, err = g.users.Challenge(said) }) {
		return nil, false, errSASLGoexit
	}
	return response, done, err
}
