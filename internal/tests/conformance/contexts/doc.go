// Package contexts checks that what a context says to locks (queue.WithMaxWait) holds for
// every kind of lock, and for all that stands above the locks.
package contexts
