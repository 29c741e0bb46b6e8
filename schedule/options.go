package schedule

import (
	"fmt"

	"github.com/turnstile-go/turnstile/queue"
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
	name     string // "": none
	maxTries int
	mutex    []zklock.Option
}

// WithMaxTries gives a tick up after n tries, of all replicas together. A try counts from its begin, whatever
// becomes of it: the function can return an error or panic, or its replica can die. So a tick that kills each
// replica which runs it does not kill them all. WithMaxTries(1) is at most once: no tick is tried again, and
// if the function fails or its replica dies, the job of that tick may have been done in part, or not at all.
// n is at most a billion. All replicas should have the same option. Default: any number of tries, so that the job is done at least once.
func WithMaxTries(n int) Option {
	return option(func(c *config) error {
		if n < 1 || n > mostCount {
			return fmt.Errorf("%w: WithMaxTries of %d: want 1 to %d", session.ErrInvalid, n, int(mostCount))
		}
		c.maxTries = n
		return nil
	})
}

// WithName sets a name for the job, such as "nightly-report", as that of a mutex ([zklock.WithName]): the
// metrics and spans of the job's lock have it, and so has the metric of the outcomes (zklock.job.ticks of
// package otelzk). So metrics tell jobs apart. The name stays in this process. It is text that can be printed,
// of 1 to 200 bytes. Default: none.
func WithName(text string) Option {
	return option(func(c *config) error {
		c.name = text
		c.mutex = append(c.mutex, zklock.WithName(text))
		return queue.CheckName(text)
	})
}
