package outbox

import "github.com/turnstile-go/turnstile/internal/line"

// directory has the calls of one directory that wait.
type directory struct {
	dir   string
	calls line.Line[Call] // in order
	lists listings        // that have stepped aside
	left  int             // how many calls have left while others waited here
	round int64           // of those that wait, in which the latest has left
}

// idle reports whether no calls wait but lists.
func (d *directory) idle() bool { return d.calls.Len() == 0 }

func (d *directory) empty() bool { return d.idle() && len(d.lists.all) == 0 }

// writes reports whether the call that is next may leave together with others.
func (d *directory) writes(e *expected) bool {
	return !d.idle() && d.calls.First().Batch != nil && !d.lists.due(e, false, d.left)
}
