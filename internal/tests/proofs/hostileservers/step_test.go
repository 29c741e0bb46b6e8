package hostileservers

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// step is one action of the man in the middle, and when it happens.
type step struct {
	on    frameKind // it waits for one of these,
	after int       // and lets so many pass
	name  string    // the name of the action
	arg   uint32
}

func (s step) String() string {
	return fmt.Sprintf("%s(%d) on a frame of kind %d after %d", s.name, int32(s.arg), s.on, s.after)
}

func (s step) action() int {
	return slices.IndexFunc(actions, func(a action) bool { return a.name == s.name })
}

func (s step) do(l *link, out [][]byte) ([][]byte, bool) {
	return actions[s.action()].do(l, out, s.arg)
}

// lies reports whether the step changes answers about the tree within the protocol.
func (s step) lies() bool { return s.action() >= firstLie }

// fits reports whether the step waits for this frame. Some actions fit only a greeting, or all frames
// but that: elsewhere the same place has another number, and the change would be a lie.
func (s step) fits(k frameKind, again bool) bool {
	switch s.name {
	case "set session":
		return k == aGreeting && again // of a new session nobody knows the number
	case "set timeout", "set password length":
		return k == aGreeting
	case "set path":
		return k == aCreated
	case "set xid", "set zxid", "set count", "set code", "odd name", "set sequence":
		if k == aGreeting {
			return false
		}
	}
	return s.on == anyFrame || s.on == k
}

// action changes the frames that are about to be sent. The first one is the frame at hand.
type action struct {
	name string
	do   func(l *link, out [][]byte, arg uint32) ([][]byte, bool)
}

// onFrame is an action that changes the frame at hand, and goes on.
func onFrame(f func(frame []byte, arg uint32) []byte) func(*link, [][]byte, uint32) ([][]byte, bool) {
	return func(_ *link, out [][]byte, arg uint32) ([][]byte, bool) {
		out[0] = f(slices.Clone(out[0]), arg)
		return out, true
	}
}

// before is an action that sends something before the frame at hand.
func before(f func(arg uint32) []byte) func(*link, [][]byte, uint32) ([][]byte, bool) {
	return func(_ *link, out [][]byte, arg uint32) ([][]byte, bool) {
		return append([][]byte{f(arg)}, out...), true
	}
}

// setting is an action that sets a number, of so many bytes, at a place in the frame.
func setting(at, size int, choices ...int64) func(*link, [][]byte, uint32) ([][]byte, bool) {
	return onFrame(func(b []byte, arg uint32) []byte {
		n := int64(int32(arg))
		if len(choices) > 0 {
			n = choices[int(arg)%len(choices)]
		}
		switch {
		case len(b) < at+size:
		case size == 8:
			setLong(b, at, n)
		default:
			setWord(b, at, uint32(n))
		}
		return b
	})
}

// Places in frames, their length included.
const (
	xidAt      = 4
	zxidAt     = 8
	codeAt     = 16
	bodyAt     = 20
	timeoutAt  = 8
	sessionAt  = 12
	passwordAt = 20
)

// actions are all actions. A fuzzer's bytes choose one by its number. So new actions go to the end of
// their half, and the files in testdata change their meaning then.
var actions = []action{
	{"drop", func(_ *link, out [][]byte, _ uint32) ([][]byte, bool) { return out[1:], true }},
	{"repeat", func(_ *link, out [][]byte, _ uint32) ([][]byte, bool) { return append(out, out[0]), true }},
	{"swap", func(l *link, out [][]byte, _ uint32) ([][]byte, bool) { l.kept = out[0]; return out[1:], true }},
	{"replay", func(l *link, out [][]byte, arg uint32) ([][]byte, bool) {
		if len(l.past) > 0 {
			out = append(out, l.past[int(arg)%len(l.past)])
		}
		return out, true
	}},
	{"hang up", func(_ *link, out [][]byte, _ uint32) ([][]byte, bool) { return nil, false }},
	{"shorten", onFrame(func(b []byte, arg uint32) []byte { // a whole frame, with less in it
		return resized(b[:4+int(arg)%(len(b)-4)])
	})},
	{"lengthen", onFrame(func(b []byte, arg uint32) []byte {
		return resized(append(b, make([]byte, 1+arg%1000)...))
	})},
	{"lose bytes", onFrame(func(b []byte, arg uint32) []byte { return b[:int(arg)%len(b)] })},
	{"set length", setting(0, 4)},
	{"set xid", setting(xidAt, 4)},
	{"set zxid", setting(zxidAt, 8, math.MaxInt64, math.MinInt64, -1, 0, 1)},
	{"set session", setting(sessionAt, 8, 0, -1, 1, math.MaxInt64, 0x1000000000001)},
	// Shorter than the server grants, or beyond belief: anything between is a lie.
	{"set timeout", setting(timeoutAt, 4, -1, 0, 1, 1000, math.MinInt32, math.MaxInt32, 7200_000)},
	{"set password length", setting(passwordAt, 4)},
	{"set count", setting(bodyAt, 4)}, // of names, or of bytes: no other number goes with the rest
	{"dribble", func(_ *link, out [][]byte, _ uint32) ([][]byte, bool) {
		return slices.Collect(slices.Chunk(slices.Concat(out...), 1)), true
	}},
	{"noise", before(func(arg uint32) []byte { return noise(arg, int(arg%100)) })},
	{"noise in a frame", before(func(arg uint32) []byte {
		return resized(append(make([]byte, 4), noise(arg, int(arg%100))...))
	})},
	{"text", before(func(uint32) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") })},
	{"session event", before(func(arg uint32) []byte { // such as zk.Conn makes for itself
		states := []uint32{0xffffff90, 0, 1, 3, 100, 101} // expired, disconnected, connecting, …, has session
		return event(0xffffffff, states[int(arg)%len(states)], "")
	})},
	{"unknown event", before(func(arg uint32) []byte { return event(5+arg%100, 3, lockPath) })},
	{"event elsewhere", before(func(arg uint32) []byte { return event(1+arg%4, arg, "/else/where") })},
	{"event of no path", before(func(arg uint32) []byte { return resized(event(1+arg%4, 3, "")[:32-arg%4]) })},
	{"event of a creation", before(func(arg uint32) []byte { return event(1, arg, lockPath) })},
	{"set path", onFrame(func(b []byte, arg uint32) []byte { // of the node that a create has made
		if len(b) <= bodyAt {
			return b
		}
		paths := []string{lockPath + "/lock-0000000000", lockPath + "/_c_1-lock-0000000000", "/locks", "lock-", ""}
		return resized(appendText(b[:bodyAt], paths[int(arg)%len(paths)]))
	})},

	// The actions from here on are lies.
	{"set code", setting(codeAt, 4)},
	{"flip", onFrame(func(b []byte, arg uint32) []byte {
		b[int(arg>>8)%len(b)] ^= byte(arg)
		return b
	})},
	{"deletion", before(func(uint32) []byte { return event(2, 3, lockPath) })},
	{"odd name", onFrame(func(b []byte, arg uint32) []byte {
		names := []string{"", "..", "../x/_c_1-lock-0000000000", "/", "a/b-lock-0000000000", "lock-\xff\xfe\x00-0000000000",
			"-lock-0000000000", "lock--000000001", "_c_-lock-0000000000", "_c_x"}
		if len(b) < bodyAt+4 {
			return b
		}
		out := words(slices.Clone(b[:bodyAt]), word(b, bodyAt)+1)
		return resized(append(appendText(out, names[int(arg)%len(names)]), b[bodyAt+4:]...))
	})},
	{"set sequence", onFrame(func(b []byte, arg uint32) []byte { // of the node made, or of some other
		if n := len(b) - 10; n > bodyAt {
			copy(b[n:], fmt.Sprintf("%010d", arg%math.MaxInt32))
		}
		return b
	})},
}

var firstLie = slices.IndexFunc(actions, func(a action) bool { return a.name == "set code" })

func noise(seed uint32, n int) []byte {
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// event returns a frame that tells of a watch.
func event(kind, state uint32, path string) []byte {
	b := words(nil, 0, 0xffffffff, 0xffffffff, 0xffffffff, 0, kind, state)
	return resized(appendText(b, path))
}

// stepSize is how many bytes of a fuzzer make one step.
const stepSize = 7

// scriptOf makes a script of any bytes.
func scriptOf(b []byte) []step {
	const longest = 16
	var script []step
	for ; len(b) >= stepSize && len(script) < longest; b = b[stepSize:] {
		script = append(script, step{
			name:  actions[int(b[0])%len(actions)].name,
			on:    frameKind(b[1]) % frameKinds,
			after: int(b[2] % 16),
			arg:   binary.BigEndian.Uint32(b[3:]),
		})
	}
	return script
}

// bytesOf is the inverse of scriptOf.
func bytesOf(script ...step) []byte {
	var b []byte
	for _, s := range script {
		i := slices.IndexFunc(actions, func(a action) bool { return a.name == s.name })
		b = append(b, byte(i), byte(s.on), byte(s.after))
		b = binary.BigEndian.AppendUint32(b, s.arg)
	}
	return b
}
