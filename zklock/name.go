package zklock

import "github.com/turnstile-go/turnstile/queue"

// WithName sets a name for the mutex in metrics and spans, such as "invoice" for the mutex at
// /locks/invoice-42. It is zklock.name on the metrics and spans of package otelzk, package lockz shows it,
// and hooks get it in a [session.AcquireInfo] and a [session.HoldInfo]. The name stays in this process and
// changes nothing else: mutexes at one path are one lock, whatever their names are.
//
// Each name makes time series of its own, for as long as the process runs. So give all mutexes that do one
// job the same name, and have few names. What tells one mutex from another is its path, and what tells one
// acquisition from another is its label ([queue.WithLabel]): both are on spans only. A [MultiLock] has no name,
// but each of its locks may have one.
//
// A name is text that can be printed, of 1 to 200 bytes. Default: none, and metrics only tell kinds of lock
// apart. The name of the ensemble is [session.WithName], which has nothing to do with this one.
func WithName(text string) Option {
	return option(func(c *config) error {
		c.name = text
		return queue.CheckName(text)
	})
}
