package zklock

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/share"
)

// Option changes a [Mutex]. [New] returns an error that matches [session.ErrInvalid] for an option
// that is nil or has a bad value.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

// config is what the options say.
type config struct {
	name      string
	handovers int           // WithLocalHandover; 0 if there is none
	keep      time.Duration // WithLazyRelease; 0 if there is none
	async     bool          // WithAsyncRelease
}

// configOf applies the options.
func configOf(opts []Option) (*config, error) {
	c := new(config)
	if err := share.ApplyAll(opts, func(o Option) error { return o.apply(c) }); err != nil {
		return nil, err
	}
	return c, nil
}
