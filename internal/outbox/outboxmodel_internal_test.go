package outbox

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// Whatever comes, is answered, refused, given up and lost in which order: every call ends once, and what has been given up
// does not leave. No multi makes two nodes in one directory, or is too long. Calls of a directory keep their order, and a
// list leaves after the calls of its directory that came before it.
func TestOutboxRandomly(t *testing.T) {
	for seed := range longtest.Pick[uint64](300, 20_000) {
		m := newOutboxModel(t, seed)
		for range 200 {
			m.step()
		}
		m.end()
		if t.Failed() {
			t.Fatalf("seed %d: %d calls", seed, len(m.all))
		}
	}
}

type outboxModel struct {
	*burst
	rng  *rand.Rand
	all  []*modelCall
	path map[string]*modelCall // but of lists
}

type modelCall struct {
	op    int32
	dir   string
	up    chan struct{}
	given bool
	left  bool // for the first time
	ended int
}

func newOutboxModel(t *testing.T, seed uint64) *outboxModel {
	rng := rand.New(rand.NewPCG(seed, 1))
	return &outboxModel{burst: newBurst(t, 1+rng.IntN(4)), rng: rng, path: make(map[string]*modelCall)}
}

func (m *outboxModel) step() {
	switch m.rng.IntN(6) {
	case 0:
		if len(m.all) > 0 {
			m.giveUp(m.all[m.rng.IntN(len(m.all))])
		}
	case 1:
		m.reply()
	default:
		for range m.rng.IntN(8) {
			m.come()
		}
	}
	m.look(m.leave())
}

func (m *outboxModel) come() {
	one := &modelCall{
		op:  []int32{codec.OpCreate, codec.OpCreate, codec.OpDelete, codec.OpGetChildren2, codec.OpExists}[m.rng.IntN(5)],
		dir: fmt.Sprint("/", m.rng.IntN(6)), up: make(chan struct{}),
	}
	path := fmt.Sprintf("%s/%d%s", one.dir, len(m.all), strings.Repeat("x", m.rng.IntN(2)*m.rng.IntN(5000)))
	if one.op == codec.OpGetChildren2 {
		path = one.dir
	} else {
		m.path[path] = one
	}
	c := Call{Frame: callFrame(one.op, path), GivenUp: one.up, Done: func(Reply) { one.ended++ }}
	if (one.op == codec.OpCreate || one.op == codec.OpDelete) && m.rng.IntN(4) > 0 {
		c.Batch = m.number(path)
	}
	m.all = append(m.all, one)
	m.Post(c)
}

func (m *outboxModel) giveUp(one *modelCall) {
	if !one.given {
		one.given = true
		close(one.up)
	}
}

// reply answers the oldest call in one of the ways in which a server can.
func (m *outboxModel) reply() {
	if len(m.burst.sent) == 0 {
		return
	}
	frame := m.burst.sent[0]
	r := succeeds(frame)
	switch m.rng.IntN(6) {
	case 0:
		r = Reply{Code: []int32{codec.CodeNoNode, codec.CodeThrottled, codec.CodeMarshallingError}[m.rng.IntN(3)]}
	case 1:
		for i := range r.Results {
			r.Results[i] = codec.Result{Op: codec.OpError, Code: []int32{codec.CodeNoNode, codec.CodeRuntimeInconsistency}[min(i, 1)]}
		}
	}
	m.burst.reply(10+m.rng.IntN(3000), r)
}

// look checks what leaves.
func (m *outboxModel) look(frames []string) {
	for _, frame := range frames {
		parts := strings.Split(frame, " + ")
		creates := make(map[string]bool)
		for _, part := range parts {
			word, path, _ := strings.Cut(part, " ")
			if word == "list" {
				m.lists(path)
				continue
			}
			one := m.path[path]
			if one.given && !one.left {
				m.t.Errorf("%s leaves after it was given up", part)
			}
			if word == "create" && len(parts) > 1 {
				if creates[one.dir] {
					m.t.Errorf("two creates of a directory leave together: %s", frame)
				}
				creates[one.dir] = true
			}
			m.inOrder(one)
			one.left = true
		}
		if size := len(frame); len(parts) > 1 && (len(parts) > batchOps || size > batchBytes) {
			m.t.Errorf("%d operations and at least %d bytes leave together", len(parts), size)
		}
	}
}

// inOrder checks that calls of the directory which came earlier, and are still wanted, have left.
func (m *outboxModel) inOrder(one *modelCall) {
	if one.op == codec.OpDelete || one.left {
		return
	}
	for _, other := range m.all {
		switch {
		case other == one:
			return
		case other.dir == one.dir && other.op != codec.OpDelete && other.op != codec.OpGetChildren2 && !other.left && !other.given:
			m.t.Errorf("a call of %s overtakes another", one.dir)
			return
		}
	}
}

// lists checks that a list leaves behind the calls that came before it. It can be that of any caller who still waits, so the
// oldest decides. Callers who have joined it have come after calls that have all left.
func (m *outboxModel) lists(dir string) {
	for _, one := range m.all {
		if one.op == codec.OpGetChildren2 && one.dir == dir && !one.given && one.ended == 0 && !one.left {
			m.inOrder(one)
			one.left = true
			return
		}
	}
}

// end answers all, or loses the connection.
func (m *outboxModel) end() {
	if m.rng.IntN(2) == 0 {
		for len(m.burst.sent) > 0 {
			m.reply()
			m.look(m.leave())
		}
		m.EndGivenUp()
		if !m.waiting.empty() || len(m.waiting.dirs) > 0 || m.window.flying != 0 || m.window.load != 0 {
			m.t.Errorf("%d calls wait, and %d are in flight", len(m.waiting.all()), m.window.flying)
		}
	} else {
		m.Forsake(m.rng.IntN(2) == 0)
	}
	for i, one := range m.all {
		if one.ended != 1 {
			m.t.Errorf("call %d of %d, %s, has ended %d times", i, one.op, one.dir, one.ended)
		}
	}
}
