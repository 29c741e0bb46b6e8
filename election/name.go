package election

import "github.com/turnstile-go/turnstile/internal/place"

// WithName sets a name for the election in metrics and spans, such as "scheduler". It is the name of the lock
// that the leader holds ([zklock.WithName]), so that a program with several elections can tell from its
// metrics which of them has no leader. It has nothing to do with the id of a candidate ([WithID]). A name is
// text that can be printed, of 1 to 200 bytes. Default: none.
func WithName(text string) Option {
	return option(func(c *config) error {
		c.name = text
		return place.CheckName(text)
	})
}
