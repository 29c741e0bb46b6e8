package schedule

import (
	"fmt"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Option changes a [Job]. [New] returns an error that matches [session.ErrInvalid] for an option that is nil
// or has a bad value.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

// config is what the options say.
type config struct {
	maxTries int
	mutex    []zklock.Option
}

// WithMaxTries gives a tick up after n tries, of all replicas together. A try counts from its begin, whatever
// becomes of it: the function can return an error or panic, or its replica can die. So a tick that kills each
// replica which runs it does not kill them all. WithMaxTries(1) is at most once: no tick is tried again, and if
// the function fails or its replica dies, the job of that tick may have been done in part, or not at all. All
// replicas should have the same option. Default: any number of tries, so that the job is done at least once.
func WithMaxTries(n int) Option {
	return option(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("%w: WithMaxTries of %d: want 1 or more", session.ErrInvalid, n)
		}
		c.maxTries = n
		return nil
	})
}
