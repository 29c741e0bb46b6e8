//go:build linux

package nemesis

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// rwState is the holders of a read-write lock, and the highest tokens so far.
type rwState struct {
	writer  turnID
	readers []turnID // in an order, so that equal states are equal
	wrote   int64    // the highest token of a writer
	of      lifeID   // the process that had it
	any     int64    // the highest token of anybody
}

func (s rwState) equal(o rwState) bool {
	return s.writer == o.writer && s.wrote == o.wrote && s.of == o.of && s.any == o.any && slices.Equal(s.readers, o.readers)
}

func (s rwState) with(reader turnID) rwState {
	s.readers = append(slices.Clone(s.readers), reader)
	slices.SortFunc(s.readers, turnID.compare)
	return s
}

func (s rwState) without(reader turnID) rwState {
	s.readers = slices.DeleteFunc(slices.Clone(s.readers), func(id turnID) bool { return id == reader })
	return s
}

func (id turnID) compare(o turnID) int {
	return cmp.Or(cmp.Compare(id.worker, o.worker), cmp.Compare(id.life, o.life), cmp.Compare(id.turn, o.turn))
}

// rwStep is what happens to a hold.
type rwStep int

const (
	rwBegin rwStep = iota
	rwDown         // the writer goes on as a reader
	rwEnd
)

type rwInput struct {
	id    turnID
	step  rwStep
	reads bool  // as what it begins
	token int64 // 0: not known
}

// rwModel is a lock with one writer, or any number of readers. A writer has a higher token than
// all before, and a reader one that is higher than those of all writers before. A writer becomes
// a reader in one step, in which no other contender can come in.
func rwModel(from rwState) porcupine.Model {
	return oneWriter(from, func(s rwState, in rwInput) bool { return in.token > s.any })
}

// keptRWModel is rwModel, except that consecutive writers of one process can have the same token.
func keptRWModel(from rwState) porcupine.Model {
	return oneWriter(from, func(s rwState, in rwInput) bool {
		return in.token > s.any || in.token == s.any && in.token == s.wrote && in.id.lifeID == s.of
	})
}

func oneWriter(from rwState, inOrder func(rwState, rwInput) bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return from },
		Equal: func(a, b any) bool {
			return a.(rwState).equal(b.(rwState))
		},
		Step: func(state, input, _ any) (bool, any) {
			s, in := state.(rwState), input.(rwInput)
			nobody := turnID{}
			switch {
			case in.step == rwDown:
				ok := s.writer == in.id
				s.writer = nobody
				return ok, s.with(in.id)
			case in.step == rwEnd && s.writer == in.id:
				s.writer = nobody
				return true, s
			case in.step == rwEnd:
				return slices.Contains(s.readers, in.id), s.without(in.id)
			case in.reads:
				ok := s.writer == nobody && (in.token == 0 || in.token > s.wrote)
				s.any = max(s.any, in.token)
				return ok, s.with(in.id)
			default:
				ok := s.writer == nobody && len(s.readers) == 0 && (in.token == 0 || inOrder(s, in))
				s.writer, s.any = in.id, max(s.any, in.token)
				return ok, s.written(in)
			}
		},
	}
}

// written takes note of the token of a writer.
func (s rwState) written(in rwInput) rwState {
	if in.token > s.wrote {
		s.wrote, s.of = in.token, in.id.lifeID
	}
	return s
}

// rwHistory is a beginning and an end of each hold, as for any lock, and between them the
// downgrade of one that had it. That happened after the last look as a writer was called, and
// before the first as a reader returned.
func rwHistory(all []span) []porcupine.Operation {
	var ops []porcupine.Operation
	for _, s := range all {
		add := func(step rwStep, call, ret int64) {
			ops = append(ops, porcupine.Operation{
				ClientId: s.id.worker, Call: call, Return: ret,
				Input: rwInput{s.id, step, s.Reads, s.token},
			})
		}
		add(rwBegin, s.first.From, s.first.To)
		if s.down() {
			add(rwDown, s.lastAlone.From, s.firstRead.To)
		}
		add(rwEnd, s.last.From, s.ended)
	}
	return ops
}

// down reports whether a writer was seen as a reader later.
func (s span) down() bool { return s.firstRead.Held }

// afterRW is the state after a history that is linearizable and whose operations have all
// returned.
func afterRW(from rwState, ops []porcupine.Operation) rwState {
	s := rwState{wrote: from.wrote, of: from.of, any: from.any}
	reads := make(map[turnID]bool) // of those that hold
	for _, id := range from.readers {
		reads[id] = true
	}
	if from.writer != (turnID{}) {
		reads[from.writer] = false
	}
	for _, op := range ops { // the steps of one hold are called in their order
		switch in := op.Input.(rwInput); in.step {
		case rwBegin:
			reads[in.id] = in.reads
			s.any = max(s.any, in.token)
			if !in.reads {
				s = s.written(in)
			}
		case rwDown:
			reads[in.id] = true
		case rwEnd:
			delete(reads, in.id)
		}
	}
	for id, r := range reads {
		if r {
			s = s.with(id)
		} else {
			s.writer = id
		}
	}
	return s
}

// rwOverlaps returns what a writer's span has in common with another's, once for each hold that
// begins while another lasts. A writer that becomes a reader is one until its last look as a
// writer, and a reader after that.
func rwOverlaps(all []span) []string {
	var found []string
	var writer, reader span // of those so far, the ones that end last
	var wrote, read int64   // when they do, as such
	for _, s := range all {
		if s.end() <= s.begin() {
			continue // one instant, which the model looks at
		}
		against := func(o span, until int64) {
			if until > s.begin() {
				found = append(found, fmt.Sprintf("a writer beside another for %v: %v and %v",
					time.Duration(min(until, s.end())-s.begin()), o, s))
			}
		}
		against(writer, wrote)
		if !s.Reads {
			against(reader, read)
		}
		if until := s.alone(); until > wrote {
			writer, wrote = s, until
		}
		if (s.Reads || s.down()) && s.end() > read {
			reader, read = s, s.end()
		}
	}
	return found
}

// alone returns the time until which a span was certainly a writer's.
func (s span) alone() int64 {
	switch {
	case s.Reads:
		return 0
	case s.down():
		return s.lastAlone.From
	default:
		return s.end()
	}
}
