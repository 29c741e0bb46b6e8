package outbox

import (
	"hash/maphash"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// How long answers will be, for the window: a list of children, or data, is expected to be as long as it was when
// it was last read on this connection.

const (
	// guessed is the answer to a read of which nothing is known.
	guessed = 1 << 10
	// mostKnown bounds how many lengths a connection remembers.
	mostKnown = 1024
)

// expected are the answers that a connection expects.
type expected struct {
	seed  maphash.Seed
	known map[uint64]int  // how long the answer to a read was
	first map[uint64]bool // lists of children in flight of which the length is not known
}

// read is what a request reads, in a few bytes. It is 0 if the request is no read whose answer can be long.
type read uint64

// readOf returns what a frame reads.
func (e *expected) readOf(frame []byte) read {
	op := codec.Op(frame)
	if op != codec.OpGetChildren2 && op != codec.OpGetData {
		return 0
	}
	if e.known == nil {
		e.seed, e.known, e.first = maphash.MakeSeed(), make(map[uint64]int), make(map[uint64]bool)
	}
	var h maphash.Hash
	h.SetSeed(e.seed)
	_ = h.WriteByte(byte(op))
	_, _ = h.Write(codec.Path(frame))
	return read(max(1, h.Sum64()))
}

// answer returns how long the answer will be. It reports false if the same list of children is on its way, and
// nobody knows how long it is.
func (e *expected) answer(frame []byte, r read) (int, bool) {
	if r == 0 {
		return 0, true
	}
	if n, ok := e.known[uint64(r)]; ok {
		return n, true
	}
	return guessed, !e.first[uint64(r)]
}

// sent takes note of a read that was sent.
func (e *expected) sent(frame []byte, r read) {
	if _, ok := e.known[uint64(r)]; r != 0 && !ok && codec.Op(frame) == codec.OpGetChildren2 {
		e.first[uint64(r)] = true
	}
}

// answered takes note of the length of an answer.
func (e *expected) answered(r read, n int) {
	if r == 0 {
		return
	}
	listing := e.first[uint64(r)]
	delete(e.first, uint64(r))
	_, ok := e.known[uint64(r)]
	if !ok && !listing && n <= guessed {
		return // of data, only what is long needs to be known
	}
	if !ok && len(e.known) >= mostKnown {
		for other := range e.known { // any
			delete(e.known, other)
			break
		}
	}
	e.known[uint64(r)] = n
}
