package wire

import (
	"encoding/binary"
	"fmt"
)

// field is one part of a reply's body, as far as it says how long it is.
type field byte

const (
	fieldStat    field = iota // of a fixed size
	fieldText                 // its length, and that many bytes
	fieldData                 // the same; a length of -1 stands for none
	fieldNames                // how many, and that many texts
	fieldEvent                // type and state of what a watch tells
	fieldResults              // of a multi: a head and what belongs to it, until a head says that was all
	fieldRest                 // whatever there is
)

// What the replies to requests hold, if they say that the request was carried out.
var (
	textBody     = []field{fieldText}
	madeBody     = []field{fieldText, fieldRest} // servers add a stat, which zk.Conn does not look at
	statBody     = []field{fieldStat}
	dataBody     = []field{fieldData, fieldStat}
	childrenBody = []field{fieldNames, fieldStat}
	eventBody    = []field{fieldEvent, fieldText}
	resultsBody  = []field{fieldResults}
	madeResult   = []field{fieldText, fieldResults}
	setResult    = []field{fieldStat, fieldResults}
)

func bodyOf(op int32) []field {
	switch op {
	case OpCreateContainer, OpCreateTTL:
		return madeBody
	case OpCreate, OpSync:
		return textBody
	case OpExists, OpSetData, OpSetACL:
		return statBody
	case OpGetData:
		return dataBody
	case OpGetChildren2:
		return childrenBody
	case OpMulti:
		return resultsBody
	}
	return nil
}

const (
	statSize   = 68
	numberSize = 4
	resultHead = 9 // operation, whether that was all, error code
	eventState = 4
	errorSize  = 4
)

// head returns how many bytes say how the field goes on.
func (f field) head() int {
	if f == fieldResults {
		return resultHead
	}
	return numberSize
}

// body checks, piece by piece as it comes, that the body of a frame holds all that it says
// it does, before zk.Conn decodes it. That panics, in a goroutine of its own, where a frame
// ends within the results of a multi; makes room for as many names, or as much data, as a
// number says; and where a frame is too short takes what an earlier one has left in the
// buffer: another directory's listing, say. Nor may anything follow: then a number on the way
// was wrong, and what looks like the names of all children are some of them.
type body struct {
	fields []field // that come next; the first may be under way
	items  int     // names still to come
	left   int     // bytes of the frame still to come
	skip   int     // of those, how many say nothing of lengths
	buf    [resultHead]byte
	have   int // bytes of the next head in buf
}

// begin makes ready for a body of that many bytes.
func (b *body) begin(fields []field, size int) error {
	if len(fields) == 0 {
		*b = body{left: size, skip: size} // nobody looks at it
		return nil
	}
	*b = body{fields: fields, left: size}
	return b.next()
}

// feed takes the next bytes of the body, and returns those after its end.
func (b *body) feed(p []byte) ([]byte, error) {
	for b.left > 0 && len(p) > 0 {
		if b.skip > 0 {
			n := min(b.skip, len(p))
			b.skip -= n
			b.left -= n
			p = p[n:]
			continue
		}
		if b.items > 0 && b.have == 0 {
			if p = b.names(p); len(p) == 0 {
				continue
			}
		}
		want := b.fields[0].head()
		n := copy(b.buf[b.have:want], p)
		b.have += n
		b.left -= n
		p = p[n:]
		if b.have < want {
			continue
		}
		b.have = 0
		if err := b.take(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// names passes over names of which the piece has all: a listing is mostly those. It leaves
// the last of all names to take, and what is not in order.
func (b *body) names(p []byte) []byte {
	at := 0
	for b.items > 1 && len(p)-at >= numberSize {
		n := int(int32(binary.BigEndian.Uint32(p[at:])))
		if n < 0 || n > min(len(p), b.left-numberSize)-at-numberSize {
			break
		}
		at += numberSize + n
		b.items--
	}
	b.left -= at
	return p[at:]
}

// take reads the head that has been gathered.
func (b *body) take() error {
	n := int(int32(binary.BigEndian.Uint32(b.buf[:])))
	switch b.fields[0] {
	case fieldNames:
		if b.items == 0 {
			if n < 0 || n > b.left/numberSize {
				return fmt.Errorf("%w: %d names in %d bytes", ErrBadFrame, n, b.left)
			}
			b.items = n + 1
			n = 0
		}
		b.items--
		if b.items > 0 {
			return b.pass(n)
		}
	case fieldEvent:
		if n < EventCreated || n > EventChildrenChanged {
			return fmt.Errorf("%w: a watch event of type %d", ErrBadFrame, n)
		}
		n = eventState
	case fieldResults:
		return b.result(int32(n), b.buf[numberSize] != 0)
	case fieldData:
		if n == -1 {
			n = 0
		}
	}
	b.fields = b.fields[1:]
	return b.pass(n)
}

// result reads the head of one result of a multi.
func (b *body) result(op int32, last bool) error {
	if last {
		b.fields = nil
		return b.pass(0)
	}
	size := 0
	switch op {
	case OpError:
		size = errorSize
	case OpCreate:
		b.fields = madeResult
	case OpSetData:
		b.fields = setResult
	case OpDelete, OpCheck:
	default:
		return fmt.Errorf("%w: a multi's result of type %d", ErrBadFrame, op)
	}
	return b.pass(size)
}

// pass has the next n bytes skipped.
func (b *body) pass(n int) error {
	if n < 0 {
		return fmt.Errorf("%w: a length of %d within it", ErrBadFrame, n)
	}
	b.skip = n
	return b.next()
}

// next checks that there is room for what must come next, and no more where that is all.
func (b *body) next() error {
	for len(b.fields) > 0 {
		switch b.fields[0] {
		case fieldStat:
			b.skip += statSize
		case fieldRest:
			b.skip = max(b.skip, b.left)
		default:
			if need := b.skip + b.fields[0].head(); need > b.left {
				return fmt.Errorf("%w: it ends %d bytes too early", ErrBadFrame, need-b.left)
			}
			return nil
		}
		b.fields = b.fields[1:]
	}
	if b.skip != b.left {
		return fmt.Errorf("%w: %d bytes where %d should follow", ErrBadFrame, b.left, b.skip)
	}
	return nil
}
