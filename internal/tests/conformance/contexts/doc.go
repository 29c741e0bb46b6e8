// Package contexts checks that what a context says to locks (queue.WithMaxWait) holds for all that stands above the
// locks. For the locks, internal/tests/locktest does.
package contexts
