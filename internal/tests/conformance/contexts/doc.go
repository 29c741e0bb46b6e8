// Package contexts checks that what a context says to locks (queue.WithLabel, queue.WithMaxWait, queue.WithOwner) holds for
// every kind of lock, and for all that stands above the locks.
package contexts
