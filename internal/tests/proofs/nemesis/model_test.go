//go:build linux

package nemesis

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// lockState is the holder, the highest token so far, and the process that had it.
type lockState struct {
	holder turnID
	token  int64
	of     lifeID
}

// lockInput is the beginning of a hold, or its end.
type lockInput struct {
	id    turnID
	end   bool
	token int64 // 0: not known
}

// lockModel is a lock with one holder at a time, each of a higher token than those before.
func lockModel(from lockState) porcupine.Model {
	return oneHolder(from, func(s lockState, in lockInput) bool { return in.token > s.token })
}

// localModel is lockModel, except that consecutive holders of one process can have the same token.
func localModel(from lockState) porcupine.Model {
	return oneHolder(from, func(s lockState, in lockInput) bool {
		return in.token > s.token || in.token == s.token && in.id.lifeID == s.of
	})
}

func oneHolder(from lockState, inOrder func(lockState, lockInput) bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return from },
		Step: func(state, input, _ any) (bool, any) {
			s, in := state.(lockState), input.(lockInput)
			if in.end {
				return s.holder == in.id, lockState{token: s.token, of: s.of}
			}
			free := s.holder == turnID{}
			if in.token == 0 {
				return free, lockState{in.id, s.token, s.of}
			}
			return free && inOrder(s, in), lockState{in.id, in.token, in.id.lifeID}
		},
	}
}

func lockHistory(all []span) []porcupine.Operation {
	ops := make([]porcupine.Operation, 0, 2*len(all))
	for _, s := range all {
		ops = append(ops,
			porcupine.Operation{ClientId: s.id.worker, Input: lockInput{s.id, false, s.token}, Call: s.first.From, Return: s.first.To},
			porcupine.Operation{ClientId: s.id.worker, Input: lockInput{s.id, true, s.token}, Call: s.last.From, Return: s.ended})
	}
	return ops
}

// afterLock is the state after a history that is linearizable and whose operations have all
// returned: at most one hold has begun and not ended.
func afterLock(from lockState, ops []porcupine.Operation) lockState {
	holding := map[turnID]bool{from.holder: true}
	for _, op := range ops { // a hold's beginning is called before its end
		in := op.Input.(lockInput)
		if in.token >= from.token && in.token > 0 {
			from.token, from.of = in.token, in.id.lifeID
		}
		holding[in.id] = !in.end
	}
	from.holder = turnID{}
	for id, holds := range holding {
		if holds && id != (turnID{}) {
			from.holder = id
		}
	}
	return from
}

// registerState is the content of the register.
type registerState struct{ token, value int64 }

// registerInput is a write, or a read if it has no value.
type registerInput struct{ token, value int64 }

// registerOutput is what a read has seen, or whether a write was refused.
type registerOutput struct {
	registerState
	stale bool
}

// registerModel is a register that refuses tokens lower than one it has seen.
func registerModel(from registerState) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return from },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(registerState), input.(registerInput), output.(registerOutput)
			switch {
			case in == registerInput{}:
				return out.registerState == s, s
			case out.stale:
				return in.token < s.token, s
			default:
				return in.token >= s.token, registerState(in)
			}
		},
	}
}

// registerHistory is the workers' record of their reads and writes. A write that had no answer counts
// if it reached the register, at the time that the register has.
func registerHistory(events []event, writes map[int64]access) []porcupine.Operation {
	var ops []porcupine.Operation
	answered := make(map[int64]bool)
	for _, e := range events {
		if e.Error != "" {
			continue
		}
		op := porcupine.Operation{ClientId: e.Worker, Call: e.From, Return: e.To}
		switch e.What {
		case eventRead:
			op.Input, op.Output = registerInput{}, registerOutput{registerState: registerState{e.Token, e.Value}}
		case eventWrite:
			answered[e.Value] = true
			op.Input, op.Output = registerInput{e.Token, e.Value}, registerOutput{stale: e.Stale}
		default:
			continue
		}
		ops = append(ops, op)
	}
	for value, w := range writes {
		if !answered[value] {
			ops = append(ops, porcupine.Operation{
				ClientId: w.worker, Call: w.at, Return: w.at,
				Input: registerInput{w.token, value}, Output: registerOutput{stale: w.stale},
			})
		}
	}
	return ops
}

// afterRegister is the state after a history that is linearizable: the value of the last write with
// the highest token. All writes with one token are by one worker, in order.
func afterRegister(from registerState, ops []porcupine.Operation) registerState {
	for _, op := range ops { // in the order of their calls
		in := op.Input.(registerInput)
		if in != (registerInput{}) && !op.Output.(registerOutput).stale && in.token >= from.token {
			from = registerState(in)
		}
	}
	return from
}

const (
	pieceSize   = 501 // odd: in the middle of a hold, often
	pieceWithin = 20 * time.Second
)

// linearizable checks a history in pieces, which end where no operation is under way:
// the checker's memory grows with the square of their number. It returns the pieces that
// are not linearizable, and how many it could not decide on in time.
func linearizable[S any](ops []porcupine.Operation, state S, model func(S) porcupine.Model, after func(S, []porcupine.Operation) S) (bad []string, unknown int) {
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for len(ops) > 0 {
		n := quiet(ops, pieceSize)
		switch porcupine.CheckOperationsTimeout(model(state), ops[:n], pieceWithin) {
		case porcupine.Illegal:
			bad = append(bad, fmt.Sprintf("not linearizable: %d operations from %.6f to %.6f",
				n, float64(ops[0].Call)/1e9, float64(ops[n-1].Call)/1e9))
		case porcupine.Unknown:
			unknown++
		}
		state = after(state, ops[:n])
		ops = ops[n:]
	}
	return bad, unknown
}

// quiet returns the least number of operations, at least so many, all of which have returned
// before the next one is called.
func quiet(ops []porcupine.Operation, least int) int {
	returned := int64(0)
	for i, op := range ops {
		if i >= least && returned < op.Call {
			return i
		}
		returned = max(returned, op.Return)
	}
	return len(ops)
}
