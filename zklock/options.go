package zklock

import (
	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/place"
)

// Option changes a [Mutex]. [New] returns an error that matches [session.ErrInvalid] for an option
// that is nil or has a bad value.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

// config is what the options say.
type config struct {
	request place.Request    // but for its Kind
	local   hold.LocalConfig // zero: each call has a place of its own
	async   bool             // WithAsyncRelease
}

// configOf applies the options.
func configOf(opts []Option) (*config, error) {
	c := new(config)
	if err := hold.ApplyAll(opts, func(o Option) error { return o.apply(c) }); err != nil {
		return nil, err
	}
	return c, nil
}
