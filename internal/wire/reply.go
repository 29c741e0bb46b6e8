package wire

import (
	"encoding/binary"
	"fmt"
)

// field is one part of a reply's body. Only its length matters here.
type field byte

const (
	fieldStat    field = iota // 68 bytes
	fieldText                 // a length, and that many bytes
	fieldData                 // the same; a length of -1 stands for null
	fieldNames                // a number, and that many texts
	fieldEvent                // the type and state of a watch event
	fieldResults              // of a multi: heads, each with the fields of its result, and a last head
	fieldRest                 // all remaining bytes
)

// The bodies of replies to requests that the server has carried out.
var (
	textBody     = []field{fieldText}
	madeBody     = []field{fieldText, fieldRest} // servers add a stat
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
	resultHead = 9 // operation, whether this is the last head, error code
	eventState = 4
	errorSize  = 4
)

// head returns the size of the number at the beginning of the field.
func (f field) head() int {
	if f == fieldResults {
		return resultHead
	}
	return numberSize
}

// body checks that the body of a frame has exactly the fields that it must have. It does that
// piece by piece, as the bytes come, before the frame is decoded.
//
// So a decoder need not fear a wrong number of names, or a wrong length of data, for which it would make
// room. Nor may bytes follow the last field. In that case an earlier number was wrong, and what looks like
// the names of all children are only some of them. zk.Conn, which decodes the events, checks less: if a frame is
// too short, it takes what an earlier frame has left in its buffer.
//
// For example, this is the body of a reply to getChildren2, with two names, 84 bytes long. Its
// fields are childrenBody: fieldNames and fieldStat. The columns show the values after each
// step.
//
//	                             left  items  skip  fields
//	begin(childrenBody, 84)        84      0     0  names, stat
//	00 00 00 02  two names         80      2     0  names, stat
//	00 00 00 03  'a' '-' '1'       73      1     0  names, stat
//	00 00 00 01                    69      0    69  none
//	'b' and a stat                  0      0     0  none
//
// feed gathers the head of a field, four bytes here, in buf. take reads the head:
//
//   - The first head is the number of names. At four bytes each, two names fit in the 80 bytes that
//     are left. So items becomes 2.
//   - The next names follow. The method names passes over all of them but the last if they are
//     complete in this piece.
//   - The head of the last name ends the field. take removes fieldNames, and pass sets skip to the
//     length of the name: 1. The method next adds the 68 bytes of the stat, which has no head. No
//     field is left, so skip must be equal to left: 69. With a wrong number on the way, or bytes
//     too many or too few, it is not, and the frame is malformed.
//   - feed passes over skip bytes. The body ends when left is 0.
type body struct {
	fields []field // to come; the first may be in progress
	items  int     // names to come
	left   int     // bytes of the frame to come
	skip   int     // of those, the next bytes that hold no length
	buf    [resultHead]byte
	have   int // bytes of the next head in buf
}

// begin prepares for a body of size bytes.
func (b *body) begin(fields []field, size int) error {
	if len(fields) == 0 {
		*b = body{left: size, skip: size} // nobody decodes it
		return nil
	}
	*b = body{fields: fields, left: size}
	return b.next()
}

// feed takes the next bytes of the body, and returns the bytes after its end.
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

// names passes over the names that p has whole. It is quick, because a list of children consists
// mostly of names. It leaves the last name of the list, and any malformed one, to take.
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

// take reads the head in buf.
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

// pass skips the next n bytes.
func (b *body) pass(n int) error {
	if n < 0 {
		return fmt.Errorf("%w: a length of %d within it", ErrBadFrame, n)
	}
	b.skip = n
	return b.next()
}

// next checks that there is room for the head of the next field. If no field is left, it checks
// that the remaining bytes are those to skip.
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
