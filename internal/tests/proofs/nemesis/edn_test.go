//go:build linux

package nemesis

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// historyEnv names a directory into which the histories of the locks with one holder are written.
const historyEnv = "HISTORY"

// operation is the beginning of a hold, or its end, as a checker sees it.
type operation struct {
	f        string
	id       turnID
	token    int64
	from, to int64
	process  int
}

// operations are those of spans: the ones that lockHistory gives to porcupine.
func operations(all []span) []operation {
	var ops []operation
	for _, s := range all {
		ops = append(ops,
			operation{f: "acquire", id: s.id, token: s.token, from: s.first.From, to: s.first.To},
			operation{f: "release", id: s.id, token: s.token, from: s.last.From, to: s.ended})
	}
	slices.SortStableFunc(ops, func(a, b operation) int { return cmp.Compare(a.from, b.from) })
	number(ops)
	return ops
}

// number gives each operation a process, which has one operation at a time, as in Jepsen. Those of one life
// of a worker share processes. Another life has others.
func number(ops []operation) {
	type process struct {
		life lifeID
		free int64 // after this
	}
	var processes []process
	for i, op := range ops {
		n := slices.IndexFunc(processes, func(p process) bool { return p.life == op.id.lifeID && p.free < op.from })
		if n < 0 {
			n = len(processes)
			processes = append(processes, process{life: op.id.lifeID})
		}
		processes[n].free, ops[i].process = op.to, n
	}
}

// edn is a history in Jepsen's notation, one operation a line. Of two at one time, an invocation comes first:
// then a checker takes them as concurrent. An operation whose end is not known ends with the history, by
// :info.
func edn(ops []operation) []byte {
	type line struct {
		at   int64
		kind string
		op   operation
	}
	var lines []line
	end := int64(0)
	for _, op := range ops {
		end = max(end, op.from)
		if op.to < math.MaxInt64 {
			end = max(end, op.to)
		}
	}
	for _, op := range ops {
		lines = append(lines, line{op.from, "invoke", op})
		if op.to < math.MaxInt64 {
			lines = append(lines, line{op.to, "ok", op})
		} else {
			lines = append(lines, line{end + 1, "info", op})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind)) // "invoke" before "ok"
	})
	var b bytes.Buffer
	for i, l := range lines {
		fmt.Fprintf(&b, "{:index %d, :time %d, :process %d, :type :%s, :f :%s, :value {:client %q, :fence %d}}\n",
			i, l.at, l.op.process, l.kind, l.op.f, l.op.id, l.op.token)
	}
	return b.Bytes()
}

// writeHistories writes the histories of the mutexes of a lock, one a file. It writes none of a read-write
// lock or a semaphore, for which Knossos has no model. Each that it writes keeps Jepsen's rules, or it
// returns an error.
func writeHistories(dir, name string, all []span) error {
	of := make(map[int][]span)
	for _, s := range all {
		if s.Reads || s.Weight > 0 {
			return nil
		}
		of[s.Of] = append(of[s.Of], s)
	}
	name = strings.NewReplacer(", ", "-", " ", "-").Replace(name)
	for i, some := range of {
		file := name
		if i > 0 {
			file += fmt.Sprint("-", i)
		}
		text := edn(operations(some))
		if _, err := readHistory(string(text)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, file+".edn"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
