package wire

// directory has the calls of one directory that wait.
type directory struct {
	dir   string
	calls line[Call] // in order
	lists listings   // that have stepped aside
	left  int        // how many calls have left while others waited here
	round int64      // of the outbox, in which the latest has left
}

// idle reports whether no calls wait but lists.
func (d *directory) idle() bool { return d.calls.len() == 0 }

func (d *directory) empty() bool { return d.idle() && len(d.lists.all) == 0 }

// joins returns the call that is next, if it may leave together with others.
func (d *directory) joins(e *expected) *Call {
	if d.idle() || d.lists.due(e, false, d.left) {
		return nil
	}
	if one := d.calls.first(); one.Batch != nil && !one.gone() {
		return one
	}
	return nil
}
