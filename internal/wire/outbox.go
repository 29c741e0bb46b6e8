package wire

import (
	"bytes"
	"slices"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// The outbox has the calls of a connection that wait to leave. While there is room in the window, they leave in the
// order in which they came. When a call finds no room, all that wait are sorted, and leave in this order:
//
//   - The parts of a multi that was refused (together.go), each alone: their callers have waited for longest.
//   - Deletes of our own nodes, which have been created before. They make directories shorter, and let other clients in.
//   - The others, one directory after the other (directory.go). So a burst of calls for one lock delays those for another
//     lock by one turn. Calls of one directory keep their order, but for lists of children (listings.go). Directories whose
//     next call may leave together with others have a line of their own, and the two lines take turns.
//
// Creates and deletes that wait leave together (together.go).
//
// A call whose caller has given up never leaves. It goes when it comes to the front, or when as many calls have come
// as were there when the outbox was last swept.

// outbox decides, and sends nothing.
type outbox struct {
	again   line[Call] // parts of a refused multi
	arrived line[Call] // in order, while there is room for all
	deletes line[Call] // these and what follows only while some wait for room
	dirs    map[string]*directory
	turns   line[*directory] // whose next call leaves alone; the first has its turn
	writers line[*directory] // all others: their next calls may leave together
	wrote   bool             // the latest turn was that of a writer
	sorted  bool             // some wait for room

	from  from   // where front has found a call
	round int64  // how many times pop was called
	came  int    // how many calls have come since the last sweep
	kept  int    // how many were there after it
	ended []Call // those whose callers have given up; their Done is due
}

// from is where the call waits whose turn it is.
type from int

const (
	fromNowhere from = iota
	fromAgain
	fromArrived
	fromDeletes
	fromTurn  // from the calls of the first of turns
	fromLists // from its lists
	fromWriter
)

// mostKept is up to how many calls an outbox keeps whose callers may have given up.
const mostKept = 256

func (o *outbox) push(one Call) {
	if o.came++; o.came > max(o.kept, mostKept) {
		o.sweep()
	}
	if o.sorted && o.empty() {
		o.sorted = false
	}
	o.put(one)
}

func (o *outbox) put(one Call) {
	switch {
	case !o.sorted:
		o.arrived.push(one)
	case codec.Op(one.Frame) == codec.OpDelete && one.Batch != nil: // others may never end, and a read of the node may follow
		o.deletes.push(one)
	default:
		d, first := o.directoryOf(one.Frame)
		if d.calls.push(one); first {
			o.finish(d)
		}
	}
}

func (o *outbox) empty() bool {
	return o.again.len()+o.arrived.len()+o.deletes.len()+o.turns.len()+o.writers.len() == 0
}

// directoryOf returns where a call waits, and whether no other waits there.
func (o *outbox) directoryOf(frame []byte) (d *directory, first bool) {
	dir := dirOf(frame)
	if d = o.dirs[string(dir)]; d == nil {
		if o.dirs == nil {
			o.dirs = make(map[string]*directory)
		}
		d = &directory{dir: string(dir)}
		o.dirs[d.dir] = d
		return d, true
	}
	return d, false
}

// dirOf returns the directory that a request is about: that of the node, of the first of several, or the one that a list
// or a sync names. It is empty for other requests.
func dirOf(frame []byte) []byte {
	path := codec.Path(frame)
	switch codec.Op(frame) {
	case codec.OpGetChildren2, codec.OpSync, codec.OpCreateContainer: // a container is a lock's directory
		return path
	}
	if i := bytes.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return path[:min(1, len(path))]
}

// sort puts the calls that have come so far in the order in which they leave when there is little room.
func (o *outbox) sort() {
	o.sorted = true
	for o.arrived.len() > 0 {
		o.put(o.arrived.pop())
	}
}

// front returns the call that is to leave next, or nil if none may leave. It stays until pop. write says whether one may
// leave that could leave together with others.
func (o *outbox) front(e *expected, write bool) *Call {
	for _, one := range []struct {
		*line[Call]
		from
	}{{&o.again, fromAgain}, {&o.deletes, fromDeletes}, {&o.arrived, fromArrived}} {
		if o.trim(one.line); one.len() > 0 && (write || one.from != fromDeletes || one.first().Batch == nil) {
			o.from = one.from
			return one.first()
		}
	}
	for _, again := range []bool{false, true} { // directories can change their line
		if one := o.writer(e, write && (again || !o.wrote)); one != nil {
			return one
		}
		if one := o.turn(e); one != nil {
			return one
		}
	}
	o.from = fromNowhere
	return nil
}

// turn returns the call of the directory whose turn it is.
func (o *outbox) turn(e *expected) *Call {
	for range o.turns.len() {
		d := *o.turns.first()
		o.tidy(d)
		switch {
		case d.lists.due(e, d.idle(), d.left):
			o.from = fromLists
			return &d.lists.all[d.lists.next].callers[0]
		case d.calls.len() > 0 && !d.writes(e):
			o.from = fromTurn
			return d.calls.first()
		}
		o.finish(o.turns.pop()) // a writer, or empty, or what waits may not leave yet
	}
	return nil
}

// writer returns the call of the first writer, unless no one may write now.
func (o *outbox) writer(e *expected, write bool) *Call {
	for write && o.writers.len() > 0 {
		d := *o.writers.first()
		if o.tidy(d); d.writes(e) {
			o.from = fromWriter
			return d.calls.first()
		}
		if o.writers.pop(); d.empty() {
			o.finish(d)
		} else {
			o.turns.push(d)
		}
	}
	return nil
}

// tidy drops what has been given up at the front of a directory. Callers that want a list which waits aside join it.
func (o *outbox) tidy(d *directory) {
	d.lists.trim(o.drop)
	for o.trim(&d.calls); d.calls.len() > 0 && d.lists.join(d.calls.first()); o.trim(&d.calls) {
		d.calls.pop()
	}
}

// pop takes what front has returned. The directory that had its turn gets another after all others.
func (o *outbox) pop() Call {
	o.round++
	switch o.from {
	case fromAgain:
		return o.again.pop()
	case fromDeletes:
		return o.deletes.pop()
	case fromArrived:
		return o.arrived.pop()
	}
	from := &o.turns
	if o.wrote = o.from == fromWriter; o.wrote {
		from = &o.writers
	}
	d := from.pop()
	d.left, d.round = d.left+1, o.round
	defer o.finish(d)
	if o.from == fromLists {
		return d.lists.pop()
	}
	return d.calls.pop()
}

// finish gives a directory another turn if calls wait there.
func (o *outbox) finish(d *directory) {
	switch {
	case !d.empty() && !d.idle() && d.calls.first().Batch != nil:
		o.writers.push(d)
	case !d.empty():
		o.turns.push(d)
	default:
		if delete(o.dirs, d.dir); len(o.dirs) == 0 {
			o.dirs = nil // a map does not shrink
		}
	}
}

// fills reports whether as many wait as leave together at most, so that it is of no use to wait for more.
func (o *outbox) fills() bool {
	n := o.deletes.len() + o.writers.len()
	if o.writers.len() > 0 {
		n += (*o.writers.first()).calls.len() // others of one directory cannot leave together
	}
	return n > batchOps
}

// listAhead reports whether the call that front has returned is a list of children with other calls of the directory behind
// it. Some of them can leave in its place although there is room, since answers come in bursts and leave room for many.
func (o *outbox) listAhead() bool {
	if o.from != fromTurn {
		return false
	}
	d := *o.turns.first()
	return codec.Op(d.calls.first().Frame) == codec.OpGetChildren2 && d.calls.len() > 1
}

// yield is called when there is no room for the call that front has returned, or when it may not leave yet. It reports
// whether another call may go ahead of it.
func (o *outbox) yield(r read, short bool) bool {
	switch {
	case o.from == fromArrived:
		o.sort()
		return true
	case o.from == fromTurn:
		d := *o.turns.first()
		if codec.Op(d.calls.first().Frame) != codec.OpGetChildren2 || short { // what is short waits where it is
			return false
		}
		d.lists.aside(d.calls.pop(), r, d.left)
		return true
	}
	return false
}

// trim drops calls at the front of a line whose callers have given up.
func (o *outbox) trim(l *line[Call]) {
	for l.len() > 0 && l.first().gone() {
		o.drop(l.pop())
	}
}

func (o *outbox) drop(one Call) { o.ended = append(o.ended, one) }

// sweep drops all calls whose callers have given up.
func (o *outbox) sweep() {
	o.came, o.kept = 0, 0
	for _, l := range []*line[Call]{&o.again, &o.arrived, &o.deletes} {
		l.set(o.wanted(l.rest()))
	}
	dirs := slices.Concat(o.turns.rest(), o.writers.rest())
	o.turns, o.writers = line[*directory]{}, line[*directory]{}
	for _, d := range dirs {
		d.calls.set(o.wanted(d.calls.rest()))
		d.lists.set(o.wanted)
		o.finish(d)
	}
}

// wanted returns the calls whose callers have not given up, and drops the others.
func (o *outbox) wanted(all []Call) (kept []Call) {
	for _, one := range all {
		if one.gone() {
			o.drop(one)
		} else {
			kept = append(kept, one)
		}
	}
	o.kept += len(kept)
	return kept
}

// all returns all calls that wait.
func (o *outbox) all() []Call {
	all := slices.Concat(o.again.rest(), o.deletes.rest(), o.arrived.rest())
	for _, d := range slices.Concat(o.turns.rest(), o.writers.rest()) {
		for _, l := range d.lists.all {
			all = append(all, l.callers...)
		}
		all = append(all, d.calls.rest()...)
	}
	return all
}
