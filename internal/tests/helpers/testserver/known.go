package testserver

import (
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// WhenKnown calls f once the wait that a Watch hook was told of knows who is ahead. Nothing that the wait has sent is on
// its way then. The hook returns the function that WhenKnown returns, which ends the watch for it.
func WhenKnown(w session.WatchInfo, f func()) func(error) {
	over := make(chan struct{})
	go func() {
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for {
			if _, known := w.Known(); known {
				f()
				return
			}
			select {
			case <-look.C:
			case <-over:
				return
			}
		}
	}()
	return func(error) { close(over) }
}
