// Package goroutines counts goroutines for tests that compare the number at a moment.
package goroutines

import "runtime"

// Count returns how many goroutines there are. It stops the world for that: [runtime.NumGoroutine] does not, and while the
// garbage collector frees the stacks of goroutines that have ended, it counts all of these too.
func Count() int {
	var room [1]runtime.StackRecord // none at all would not stop the world
	n, _ := runtime.GoroutineProfile(room[:])
	return n
}
