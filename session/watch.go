package session

import (
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
)

// WatchEvent is what ended a [Watch].
type WatchEvent int

const (
	// WatchPending: the watch has not ended.
	WatchPending = WatchEvent(core.WatchPending)
	// WatchDeleted: the node was deleted. The event came on the connection on which the watch was
	// set, so all earlier events have been reported before it.
	WatchDeleted = WatchEvent(core.WatchDeleted)
	// WatchChanged: the node's data was changed. Of a watch on children: a child was created or deleted, or the
	// node itself was created.
	WatchChanged = WatchEvent(core.WatchChanged)
	// WatchBroken: the connection or the session was lost. The event of the watch may have been
	// missed.
	WatchBroken = WatchEvent(core.WatchBroken)
)

// Watch reports once what happens to a node, or to its children, next. All methods of a Watch may be called by any
// number of goroutines at once. They panic if a [Session] has not made the Watch.
type Watch core.Watch

// core returns what w is. It panics if w is nil or a zero value.
func (w *Watch) core() *core.Watch { return (*core.Watch)(w).Made() }

// Done returns a channel that is closed when the watch has ended. Event then returns why.
func (w *Watch) Done() <-chan struct{} { return w.core().Done() }

// Event returns what has ended the watch, or WatchPending.
func (w *Watch) Event() WatchEvent { return WatchEvent(w.core().Event()) }

// AfterEvent calls f in a goroutine of its own when the watch has ended, or at once if it has ended. Until then it takes no
// goroutine. stop cancels that, and reports whether f will not be called. It does not wait for f. A nil f panics.
func (w *Watch) AfterEvent(f func()) (stop func() bool) {
	made := w.core()
	if f == nil {
		panic("session: Watch.AfterEvent: nil function")
	}
	return made.AfterEvent(f)
}

// Data returns the data and the stat of the node as they were when the watch was set. It returns nil and nil if there was no
// node, if no answer has told what it was, and for a watch on children. Goroutines share both, so nobody may change them.
func (w *Watch) Data() ([]byte, *zk.Stat) { return w.core().Data() }
