package election

import (
	"fmt"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// WithName sets a name for the election in metrics and spans, such as "scheduler". It is the name of the lock
// that the leader holds (Name of a [queue.Request]), so that a program with several elections can tell from its
// metrics which of them has no leader. It has nothing to do with the id of a candidate ([WithID]). A name is
// text that can be printed, of 1 to 200 bytes. Default: none.
func WithName(text string) Option {
	return option(func(c *config) error {
		if text == "" {
			return fmt.Errorf("%w: empty name", session.ErrInvalid)
		}
		c.name = text
		return queue.Request{Kind: queue.Mutex(), Name: text}.Check()
	})
}
