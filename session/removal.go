package session

import "github.com/turnstile-go/turnstile/internal/core"

// Removal is a delete that is guaranteed, and may be in progress: see [Session.Remove]. Its methods may be called by any
// number of goroutines at once. They panic if no [Session] has made the Removal.
type Removal core.Removal

// core returns what r is. It panics if r is nil or a zero value.
func (r *Removal) core() *core.Removal { return (*core.Removal)(r).Made() }

// Done returns a channel that is closed when the servers have said that the node is gone, when they have refused for the
// first time, or when the session has ended. After a refusal the session goes on trying, more slowly.
func (r *Removal) Done() <-chan struct{} { return r.core().Done() }

// Cut returns a channel that is closed when the connection ends that was there when the removal began. It is closed
// already if there was none. The next connection sends the delete before the requests of others. So a caller that waits for
// Done, but not for an outage, waits for Cut too.
func (r *Removal) Cut() <-chan struct{} { return r.core().Cut() }

// Err returns nil if the servers have said that the node is gone, and also before Done is closed. Otherwise it returns
// what the servers have refused, such as zk.ErrNoAuth, or the error of the session, which matches [ErrLost] or
// [ErrClosed]. An ephemeral node goes with its session.
func (r *Removal) Err() error {
	select {
	case <-r.core().Done():
		return r.core().Err()
	default:
		return nil
	}
}
