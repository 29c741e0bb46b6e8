//go:build linux

package nemesis

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// jepsenOp is a line of a history, as a checker reads it.
type jepsenOp struct {
	index, time int64
	process     int
	kind, f     string
	client      string
	fence       int64
}

// atom is a token of EDN: a brace, a string, a keyword or a number. Commas are blanks there.
var atom = regexp.MustCompile(`[{}]|"(?:[^"\\]|\\.)*"|:[a-z]+|-?\d+|[^\s,]`)

// readEDN reads maps, whose values are atoms or maps.
func readEDN(text string) (all []map[string]any, err error) {
	atoms := atom.FindAllString(text, -1)
	for len(atoms) > 0 {
		var m map[string]any
		if m, atoms, err = readMap(atoms); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func readMap(atoms []string) (m map[string]any, rest []string, err error) {
	if len(atoms) == 0 || atoms[0] != "{" {
		return nil, nil, fmt.Errorf("no map: %.3q", atoms)
	}
	m = make(map[string]any)
	for atoms = atoms[1:]; len(atoms) > 0 && atoms[0] != "}"; {
		key := atoms[0]
		if _, twice := m[key]; twice || len(atoms) < 2 || key[0] != ':' {
			return nil, nil, fmt.Errorf("no key, or one without a value: %q", key)
		}
		if atoms[1] == "{" {
			m[key], atoms, err = readMap(atoms[1:])
		} else {
			m[key], err = readAtom(atoms[1])
			atoms = atoms[2:]
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if len(atoms) == 0 {
		return nil, nil, fmt.Errorf("a map without end: %v", m)
	}
	return m, atoms[1:], nil
}

func readAtom(a string) (any, error) {
	switch a[0] {
	case ':':
		return a, nil
	case '"':
		return strconv.Unquote(a)
	}
	return strconv.ParseInt(a, 10, 64)
}

// readHistory reads a history, and returns an error if it breaks Jepsen's rules: indices count, times do not
// fall, and a process has one operation at a time, whose end repeats its beginning.
func readHistory(text string) (ops []jepsenOp, err error) {
	all, err := readEDN(text)
	if err != nil {
		return nil, err
	}
	running := make(map[int]jepsenOp)
	crashed := make(map[int]bool)
	for i, m := range all {
		value, _ := m[":value"].(map[string]any)
		op := jepsenOp{kind: fmt.Sprint(m[":type"]), f: fmt.Sprint(m[":f"]), client: fmt.Sprint(value[":client"])}
		for key, to := range map[string]*int64{":index": &op.index, ":time": &op.time} {
			*to, _ = m[key].(int64)
		}
		process, ok := m[":process"].(int64)
		fence, known := value[":fence"].(int64)
		op.process, op.fence = int(process), fence
		begun, busy := running[op.process]
		switch {
		case !ok || !known || op.index != int64(i) || op.f != ":acquire" && op.f != ":release":
			return nil, fmt.Errorf("not an operation: %v", m)
		case i > 0 && op.time < ops[i-1].time:
			return nil, fmt.Errorf("time goes back: %v", m)
		case op.kind == ":invoke" && !busy && !crashed[op.process]:
			running[op.process] = op
		case op.kind == ":ok" && busy, op.kind == ":info" && busy:
			delete(running, op.process)
			crashed[op.process] = op.kind == ":info"
			if begun.f != op.f || begun.client != op.client || begun.fence != op.fence {
				return nil, fmt.Errorf("%v ends %v", op, begun)
			}
		default:
			return nil, fmt.Errorf("process %d is busy, idle or crashed: %v", op.process, m)
		}
		ops = append(ops, op)
	}
	if len(running) > 0 {
		return nil, fmt.Errorf("operations without an end: %v", running)
	}
	return ops, nil
}

// Histories keep Jepsen's rules, and have the operations of the spans.
func TestHistories(t *testing.T) {
	var h history
	h.hold(0, 1, 10, 20)
	h.add(0, eventFree, 21, 25, nil)
	h.hold(1, 2, 24, 30)        // is killed
	h.events = append(h.events, // and its next life
		event{Worker: 1, Life: 2, Turn: 1, What: eventLook, From: 50, To: 51, Held: true},
		event{Worker: 1, Life: 2, Turn: 1, What: eventToken, Token: 3},
		event{Worker: 1, Life: 2, Turn: 1, What: eventFree, From: 51, To: 55})
	h.add(2, eventLook, 60, 61, held) // never known to end
	all := spans(h.events, map[lifeID]int64{{1, 1}: 40})
	dir := t.TempDir()
	if err := writeHistories(dir, "turnstile, the lock", all); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "turnstile-the-lock.edn"))
	if err != nil {
		t.Fatal(err)
	}
	ops, err := readHistory(string(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var got []string
	for _, op := range ops {
		got = append(got, fmt.Sprintf("%d %d %s %s %s %d", op.time, op.process, op.kind, op.f, op.client, op.fence))
	}
	want := []string{
		"10 0 :invoke :acquire w0.1#1 1", "11 0 :ok :acquire w0.1#1 1", "19 0 :invoke :release w0.1#1 1",
		"24 1 :invoke :acquire w1.1#1 2", "25 0 :ok :release w0.1#1 1", "25 1 :ok :acquire w1.1#1 2",
		"29 1 :invoke :release w1.1#1 2", "40 1 :ok :release w1.1#1 2",
		"50 2 :invoke :acquire w1.2#1 3", "50 3 :invoke :release w1.2#1 3",
		"51 2 :ok :acquire w1.2#1 3", "55 3 :ok :release w1.2#1 3",
		"60 4 :invoke :acquire w2.1#1 0", "60 5 :invoke :release w2.1#1 0",
		"61 4 :ok :acquire w2.1#1 0", "62 5 :info :release w2.1#1 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The reader finds what breaks Jepsen's rules.
func TestReadHistory(t *testing.T) {
	line := func(index, time int64, process int, kind, f string) string {
		return fmt.Sprintf("{:index %d, :time %d, :process %d, :type :%s, :f :%s, :value {:client \"c\", :fence 1}}\n",
			index, time, process, kind, f)
	}
	begun := line(0, 5, 0, "invoke", "acquire")
	right := begun + line(1, 5, 0, "ok", "acquire")
	for name, tt := range map[string]struct {
		text  string
		legal bool
	}{
		"right":              {right, true},
		"right, and a crash": {begun + line(1, 5, 0, "info", "acquire"), true},
		"two ends":           {right + line(2, 5, 0, "ok", "acquire"), false},
		"no end":             {begun, false},
		"two at once":        {begun + line(1, 5, 0, "invoke", "release"), false},
		"time goes back":     {begun + line(1, 4, 0, "ok", "acquire"), false},
		"end of another":     {begun + line(1, 5, 0, "ok", "release"), false},
		"after a crash":      {begun + line(1, 5, 0, "info", "acquire") + line(2, 5, 0, "invoke", "release"), false},
		"an index too many":  {line(1, 5, 0, "invoke", "acquire"), false},
		"another operation":  {line(0, 5, 0, "invoke", "read") + line(1, 5, 0, "ok", "read"), false},
		"a map without end":  {"{:index 0", false},
		"a key without more": {"{:index}", false},
	} {
		if _, err := readHistory(tt.text); (err == nil) != tt.legal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No history is written of holds that do not exclude each other.
func TestNoHistory(t *testing.T) {
	dir := t.TempDir()
	all := []span{{ended: math.MaxInt64}, {claim: claim{Weight: 1}, ended: math.MaxInt64}}
	if err := writeHistories(dir, "semaphore", all); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > 0 {
		t.Errorf("%v: %v", err, files)
	}
	one := []span{{id: turnID{turn: 1}, claim: claim{Of: 2}, ended: 3}}
	if err := writeHistories(dir, "batched", one); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "batched-2.edn"))
	if err != nil || strings.Count(string(text), "\n") != 4 {
		t.Errorf("%v: %s", err, text)
	}
}
