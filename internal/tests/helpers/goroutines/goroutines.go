// Package goroutines counts goroutines for tests that compare the number at a moment.
package goroutines

import (
	"runtime"
	"strings"
)

// Count returns how many goroutines there are. It stops the world for that: [runtime.NumGoroutine] does not, and while the
// garbage collector frees the stacks of goroutines that have ended, it counts all of these too.
func Count() int {
	var room [1]runtime.StackRecord // none at all would not stop the world
	n, _ := runtime.GoroutineProfile(room[:])
	return n
}

// In returns how many goroutines run a function, or one that it has called. name is a part of its full name, such as
// line.(*Errands).run. Other goroutines of the process, such as those that the collector starts, do not count.
func In(name string) (n int) {
	stacks := make([]runtime.StackRecord, Count()+10)
	all, ok := runtime.GoroutineProfile(stacks)
	for !ok {
		stacks = make([]runtime.StackRecord, 2*all)
		all, ok = runtime.GoroutineProfile(stacks)
	}
	for _, s := range stacks[:all] {
		for frames := runtime.CallersFrames(s.Stack()); ; {
			f, more := frames.Next()
			if strings.Contains(f.Function, name) {
				n++
				break
			}
			if !more {
				break
			}
		}
	}
	return n
}
