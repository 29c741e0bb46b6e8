package outbox

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/line"
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

// waiting has the calls that wait. It decides, and sends nothing.
type waiting struct {
	again   line.Line[Call] // parts of a refused multi
	arrived line.Line[Call] // in order, while there is room for all
	deletes line.Line[Call] // these and what follows only while some wait for room
	dirs    map[string]*directory
	turns   line.Line[*directory] // whose next call leaves alone; the first has its turn
	writers line.Line[*directory] // all others: their next calls may leave together
	wrote   bool                  // the latest turn was that of a writer
	sorted  bool                  // some wait for room

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

// mostKept is up to how many calls are kept whose callers may have given up.
const mostKept = 256

func (w *waiting) push(one Call) {
	if w.came++; w.came > max(w.kept, mostKept) {
		w.sweep()
	}
	if w.sorted && w.empty() {
		w.sorted = false
	}
	w.put(one)
}

func (w *waiting) put(one Call) {
	switch {
	case !w.sorted:
		w.arrived.Push(one)
	case codec.Op(one.Frame) == codec.OpDelete && one.Batch != nil: // others may never end, and a read of the node may follow
		w.deletes.Push(one)
	default:
		d, first := w.directoryOf(&one)
		if d.calls.Push(one); first {
			w.finish(d)
		}
	}
}

func (w *waiting) empty() bool {
	return w.again.Len()+w.arrived.Len()+w.deletes.Len()+w.turns.Len()+w.writers.Len() == 0
}

// directoryOf returns where a call waits, and whether no other waits there.
func (w *waiting) directoryOf(one *Call) (d *directory, first bool) {
	if one.Dir != "" {
		d = w.dirs[one.Dir]
	} else {
		d = w.dirs[string(dirOf(one.Frame))]
	}
	if d == nil {
		if w.dirs == nil {
			w.dirs = make(map[string]*directory)
		}
		d = &directory{dir: cmp.Or(one.Dir, string(dirOf(one.Frame)))}
		w.dirs[d.dir] = d
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
func (w *waiting) sort() {
	w.sorted = true
	for w.arrived.Len() > 0 {
		w.put(w.arrived.Pop())
	}
}

// front returns the call that is to leave next, or nil if none may leave. It stays until pop. write says whether one may
// leave that could leave together with others.
func (w *waiting) front(e *expected, write bool) *Call {
	for _, one := range []struct {
		*line.Line[Call]
		from
	}{{&w.again, fromAgain}, {&w.deletes, fromDeletes}, {&w.arrived, fromArrived}} {
		if w.trim(one.Line); one.Len() > 0 && (write || one.from != fromDeletes || one.First().Batch == nil) {
			w.from = one.from
			return one.First()
		}
	}
	for _, again := range []bool{false, true} { // directories can change their line
		if one := w.writer(e, write && (again || !w.wrote)); one != nil {
			return one
		}
		if one := w.turn(e); one != nil {
			return one
		}
	}
	w.from = fromNowhere
	return nil
}

// turn returns the call of the directory whose turn it is.
func (w *waiting) turn(e *expected) *Call {
	for range w.turns.Len() {
		d := *w.turns.First()
		w.tidy(d)
		switch {
		case d.lists.due(e, d.idle(), d.left):
			w.from = fromLists
			return &d.lists.all[d.lists.next].callers[0]
		case d.calls.Len() > 0 && !d.writes(e):
			w.from = fromTurn
			return d.calls.First()
		}
		w.finish(w.turns.Pop()) // a writer, or empty, or what waits may not leave yet
	}
	return nil
}

// writer returns the call of the first writer, unless no one may write now.
func (w *waiting) writer(e *expected, write bool) *Call {
	for write && w.writers.Len() > 0 {
		d := *w.writers.First()
		if w.tidy(d); d.writes(e) {
			w.from = fromWriter
			return d.calls.First()
		}
		if w.writers.Pop(); d.empty() {
			w.finish(d)
		} else {
			w.turns.Push(d)
		}
	}
	return nil
}

// tidy drops what has been given up at the front of a directory. Callers that want a list which waits aside join it.
func (w *waiting) tidy(d *directory) {
	d.lists.trim(w.drop)
	for w.trim(&d.calls); d.calls.Len() > 0 && d.lists.join(d.calls.First()); w.trim(&d.calls) {
		d.calls.Pop()
	}
}

// pop takes what front has returned. The directory that had its turn gets another after all others.
func (w *waiting) pop() Call {
	w.round++
	switch w.from {
	case fromAgain:
		return w.again.Pop()
	case fromDeletes:
		return w.deletes.Pop()
	case fromArrived:
		return w.arrived.Pop()
	}
	from := &w.turns
	if w.wrote = w.from == fromWriter; w.wrote {
		from = &w.writers
	}
	d := from.Pop()
	d.left, d.round = d.left+1, w.round
	defer w.finish(d)
	if w.from == fromLists {
		return d.lists.pop()
	}
	return d.calls.Pop()
}

// finish gives a directory another turn if calls wait there.
func (w *waiting) finish(d *directory) {
	switch {
	case !d.empty() && !d.idle() && d.calls.First().Batch != nil:
		w.writers.Push(d)
	case !d.empty():
		w.turns.Push(d)
	default:
		if delete(w.dirs, d.dir); len(w.dirs) == 0 {
			w.dirs = nil // a map does not shrink
		}
	}
}

// gather takes calls that leave together with one that has been taken out, which had its turn: deletes, and
// then creates, one directory after the other. limit bounds the length of the multi.
func (w *waiting) gather(first Call, limit int, e *expected) []Call {
	parts, size := []Call{first}, batchFrame+partSize(&first)
	fits := func(one *Call) bool {
		return one.Batch != nil && len(parts) < batchOps && size+partSize(one) <= limit
	}
	add := func(one Call) {
		parts = append(parts, one)
		size += partSize(&one)
	}
	for w.trim(&w.deletes); w.deletes.Len() > 0 && fits(w.deletes.First()); w.trim(&w.deletes) {
		add(w.deletes.Pop())
	}
	var passed, served []*directory
	for n := min(w.writers.Len(), mostLooked); n > 0 && len(parts) < batchOps; n-- {
		d := w.writers.Pop()
		if w.tidy(d); d.round == w.round || !d.writes(e) || !fits(d.calls.First()) {
			passed = append(passed, d)
			continue
		}
		d.left, d.round = d.left+1, w.round
		add(d.calls.Pop())
		served = append(served, d)
	}
	w.writers.Unpop(passed) // they keep their turn
	for _, d := range served {
		w.finish(d)
	}
	return parts
}

// fills reports whether as many wait as leave together at most, so that it is of no use to wait for more.
func (w *waiting) fills() bool {
	n := w.deletes.Len() + w.writers.Len()
	if w.writers.Len() > 0 {
		n += (*w.writers.First()).calls.Len() // others of one directory cannot leave together
	}
	return n > batchOps
}

// listAhead reports whether the call that front has returned is a list of children with other calls of the directory behind
// it. Some of them can leave in its place although there is room, since answers come in bursts and leave room for many.
func (w *waiting) listAhead() bool {
	if w.from != fromTurn {
		return false
	}
	d := *w.turns.First()
	return codec.Op(d.calls.First().Frame) == codec.OpGetChildren2 && d.calls.Len() > 1
}

// yield is called when there is no room for the call that front has returned, or when it may not leave yet. It reports
// whether another call may go ahead of it.
func (w *waiting) yield(r read, short bool) bool {
	switch {
	case w.from == fromArrived:
		w.sort()
		return true
	case w.from == fromTurn:
		d := *w.turns.First()
		if codec.Op(d.calls.First().Frame) != codec.OpGetChildren2 || short { // what is short waits where it is
			return false
		}
		d.lists.aside(d.calls.Pop(), r, d.left)
		return true
	}
	return false
}

// trim drops calls at the front of a line whose callers have given up.
func (w *waiting) trim(l *line.Line[Call]) {
	for l.Len() > 0 && l.First().gone() {
		w.drop(l.Pop())
	}
}

func (w *waiting) drop(one Call) { w.ended = append(w.ended, one) }

// sweep drops all calls whose callers have given up.
func (w *waiting) sweep() {
	w.came, w.kept = 0, 0
	for _, l := range []*line.Line[Call]{&w.again, &w.arrived, &w.deletes} {
		l.Set(w.wanted(l.Rest()))
	}
	dirs := slices.Concat(w.turns.Rest(), w.writers.Rest())
	w.turns, w.writers = line.Line[*directory]{}, line.Line[*directory]{}
	for _, d := range dirs {
		d.calls.Set(w.wanted(d.calls.Rest()))
		d.lists.set(w.wanted)
		w.finish(d)
	}
}

// wanted returns the calls whose callers have not given up, and drops the others.
func (w *waiting) wanted(all []Call) (kept []Call) {
	for _, one := range all {
		if one.gone() {
			w.drop(one)
		} else {
			kept = append(kept, one)
		}
	}
	w.kept += len(kept)
	return kept
}

// all returns all calls that wait.
func (w *waiting) all() []Call {
	all := slices.Concat(w.again.Rest(), w.deletes.Rest(), w.arrived.Rest())
	for _, d := range slices.Concat(w.turns.Rest(), w.writers.Rest()) {
		for _, l := range d.lists.all {
			all = append(all, l.callers...)
		}
		all = append(all, d.calls.Rest()...)
	}
	return all
}
