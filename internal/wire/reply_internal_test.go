package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// numbers makes bytes of 32-bit numbers.
func numbers(ns ...int32) []byte {
	var b []byte
	for _, n := range ns {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// sized returns a string with its length in front.
func sized(s string) []byte { return append(numbers(int32(len(s))), s...) }

// result is the head of one result of a multi.
func result(op int32, last byte, rest ...byte) []byte {
	return slices.Concat(numbers(op), []byte{last}, numbers(0), rest)
}

var (
	aStat = make([]byte, statSize)
	ended = result(-1, 1)
)

// bodies has a well-formed reply of each kind.
var bodies = map[int32][]byte{
	OpCreate:          sized("/a"),
	OpCreateContainer: append(sized("/a"), aStat...),
	OpCreateTTL:       append(sized("/a"), aStat...),
	OpSync:            sized("/"),
	OpExists:          aStat,
	OpSetData:         aStat,
	OpSetACL:          aStat,
	OpGetData:         append(sized("data"), aStat...),
	OpGetChildren2:    slices.Concat(numbers(3), sized("a"), sized(""), sized("another"), aStat),
	OpMulti: slices.Concat(result(OpCreate, 0, sized("/a")...), result(OpSetData, 0, aStat...),
		result(OpDelete, 0), result(OpCheck, 0), result(OpError, 0, numbers(CodeNoNode)...), ended),
}

// inspect gives a body to the check, in pieces of the given size.
func inspect(fields []field, p []byte, size int) error {
	var b body
	if err := b.begin(fields, len(p)); err != nil {
		return err
	}
	for piece := range slices.Chunk(p, size) {
		rest, err := b.feed(piece)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return fmt.Errorf("%d bytes are left over", len(rest))
		}
	}
	if b.left != 0 || b.skip != 0 || b.have != 0 {
		return fmt.Errorf("at the end there is more to come: %+v", b)
	}
	return nil
}

// A well-formed body passes, and a shorter one does not, in whatever pieces it comes.
func TestBody(t *testing.T) {
	for op, whole := range bodies {
		fields := bodyOf(op)
		for size := 1; size <= len(whole); size++ {
			if err := inspect(fields, whole, size); err != nil {
				t.Errorf("operation %d, in pieces of %d: %v", op, size, err)
			}
			err := inspect(fields, append(slices.Clone(whole), 1, 2, 3), size)
			if made := op == OpCreateContainer || op == OpCreateTTL; made != (err == nil) {
				t.Errorf("operation %d, more after it: %v", op, err)
			}
		}
		end := len(whole)
		if op == OpCreateContainer || op == OpCreateTTL {
			end -= statSize // some servers send a stat, which zk.Conn ignores
		}
		for n := range end {
			for _, size := range []int{1, 7, len(whole)} {
				if err := inspect(fields, whole[:n], size); !errors.Is(err, ErrBadFrame) {
					t.Errorf("operation %d, %d of %d bytes: %v, want %v", op, n, len(whole), err, ErrBadFrame)
				}
			}
		}
	}
	if err := inspect(dataBody, append(numbers(-1), aStat...), 3); err != nil {
		t.Errorf("no data: %v", err)
	}
	if err := inspect(childrenBody, append(numbers(0), aStat...), 3); err != nil {
		t.Errorf("no children: %v", err)
	}
}

func TestBodyRefused(t *testing.T) {
	room := make([]byte, 200)
	for _, c := range []struct {
		name   string
		fields []field
		body   []byte
		says   string
	}{
		{"a text of negative length", textBody, numbers(-1), "length of -1"},
		{"a text longer than its frame", textBody, numbers(1 << 30), "should follow"},
		{"data of 2 GB", dataBody, numbers(math.MaxInt32), "should follow"},
		{"data of less than none", dataBody, numbers(-2), "length of -2"},
		{"2 billion names", childrenBody, numbers(math.MaxInt32), "2147483647 names"},
		{"a negative number of names", childrenBody, numbers(-1), "-1 names"},
		{"a name of negative length", childrenBody, numbers(2, -5), "length of -5"},
		{"the last name of negative length", childrenBody, numbers(1, -5), "length of -5"},
		{"a name longer than its frame", childrenBody, numbers(2, 1000), "too early"},
		{"an event of the session", eventBody, numbers(-1, -112, 0), "type -1"},
		{"an event of another type", eventBody, numbers(5, 3, 0), "type 5"},
		{"an event with half a path", eventBody, numbers(1, 3, 1000), "should follow"},
		{"a result of no operation", resultsBody, result(77, 0), "type 77"},
		{"a created path of negative length", resultsBody, result(OpCreate, 0, numbers(-1)...), "length of -1"},
	} {
		for _, size := range []int{1, 5, 1000} {
			err := inspect(c.fields, append(slices.Clone(c.body), room...), size)
			if !errors.Is(err, ErrBadFrame) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, in pieces of %d: %v, want one that says %q", c.name, size, err, c.says)
			}
		}
	}
}

// FuzzBody checks that zk.Conn can decode every body that passes: it stays within the frame, and
// makes no room for more than is there.
func FuzzBody(f *testing.F) {
	ops := []int32{OpCreate, OpExists, OpGetData, OpGetChildren2, OpMulti, XidEvent}
	for i, op := range ops {
		f.Add(byte(i), bodies[op], byte(3))
	}
	f.Add(byte(5), numbers(EventChildrenChanged, 3, 0), byte(3))
	f.Add(byte(4), numbers(1), byte(1)) // ends within the head of a result: zk.Conn panics
	f.Fuzz(func(t *testing.T, which byte, p []byte, size byte) {
		op := ops[int(which)%len(ops)]
		fields := bodyOf(op)
		if op == XidEvent {
			fields = eventBody
		}
		pieces := inspect(fields, p, int(size)+1)
		if whole := inspect(fields, p, len(p)+1); (pieces == nil) != (whole == nil) {
			t.Fatalf("in pieces of %d: %v; whole: %v", int(size)+1, pieces, whole)
		}
		if pieces != nil {
			if !errors.Is(pieces, ErrBadFrame) {
				t.Fatal(pieces)
			}
			return
		}
		if err := reread(fields, bytes.NewBuffer(p)); err != nil {
			t.Fatalf("operation %d: it passes, and %v", op, err)
		}
	})
}

// reread reads a body in the simple way, to check the other.
func reread(fields []field, b *bytes.Buffer) (err error) {
	take := func(n int) []byte {
		p := b.Next(n)
		if n < 0 || len(p) < n {
			err = fmt.Errorf("%d bytes are missing", n-len(p))
			return make([]byte, max(n, 4)%1000)
		}
		return p
	}
	number := func() int { return int(int32(binary.BigEndian.Uint32(take(4)))) }
	defer func() {
		if err == nil && b.Len() > 0 {
			err = fmt.Errorf("%d bytes are left over", b.Len())
		}
	}()
	for _, f := range fields {
		switch f {
		case fieldStat:
			take(statSize)
		case fieldText:
			take(number())
		case fieldData:
			take(max(0, number()))
		case fieldNames:
			for n := number(); n > 0 && err == nil; n-- {
				take(number())
			}
		case fieldEvent:
			take(8)
		case fieldResults:
			for err == nil {
				op := number()
				if take(5)[0] != 0 {
					break
				}
				switch op {
				case OpError:
					take(4)
				case OpCreate:
					take(number())
				case OpSetData:
					take(statSize)
				}
			}
		}
	}
	return err
}

// The example in the comment on body is right.
func TestBodyExample(t *testing.T) {
	p := slices.Concat(numbers(2), sized("a-1"), sized("b"), aStat)
	var b body
	if err := b.begin(childrenBody, len(p)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ feed, left, items, skip, fields int }{
		{0, 84, 0, 0, 2},
		{4, 80, 2, 0, 2},
		{7, 73, 1, 0, 2},
		{4, 69, 0, 69, 0},
		{69, 0, 0, 0, 0},
	} {
		if _, err := b.feed(p[:step.feed]); err != nil {
			t.Fatal(err)
		}
		p = p[step.feed:]
		if b.left != step.left || b.items != step.items || b.skip != step.skip || len(b.fields) != step.fields {
			t.Fatalf("after %d bytes: %+v, want %+v", step.feed, b, step)
		}
	}
}
