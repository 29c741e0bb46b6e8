package codec

import (
	"encoding/binary"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
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

const (
	statSize   = 68
	resultHead = 9
)

var (
	aStat = make([]byte, statSize)
	ended = result(-1, 1)
)

// bodies has a well-formed answer to each kind of request.
var bodies = map[int32][]byte{
	OpClose:           nil,
	OpPing:            nil,
	OpDelete:          nil,
	OpSetWatches:      nil,
	OpCreate:          sized("/a"),
	OpCreateContainer: append(sized("/a"), aStat...),
	OpCreateTTL:       append(sized("/a"), aStat...),
	OpSync:            sized("/"),
	OpExists:          aStat,
	OpSetData:         aStat,
	OpSetACL:          aStat,
	OpGetData:         append(sized("data"), aStat...),
	OpGetACL:          slices.Concat(numbers(1, 31), sized("world"), sized("anyone"), aStat),
	OpGetChildren2:    slices.Concat(numbers(3), sized("a"), sized(""), sized("another"), aStat),
	OpMulti: slices.Concat(result(OpCreate, 0, sized("/a")...), result(OpSetData, 0, aStat...),
		result(OpDelete, 0), result(OpCheck, 0), result(OpError, 0, numbers(CodeNoNode)...), ended),
}

func decode(op int32, body []byte) (Answer, error) { return DecodeAnswer(op, &Decoder{Rest: body}) }

// A well-formed answer is decoded. One that is shorter or longer is refused.
func TestDecodeAnswer(t *testing.T) {
	for op, whole := range bodies {
		made := op == OpCreateContainer || op == OpCreateTTL
		if _, err := decode(op, whole); err != nil {
			t.Errorf("%s: %v", OpName(op), err)
		}
		if _, err := decode(op, append(slices.Clone(whole), 1)); err == nil {
			t.Errorf("%s: more after it is taken", OpName(op))
		}
		for n := range whole {
			if _, err := decode(op, whole[:n]); (err == nil) != (made && n == len(whole)-statSize) {
				t.Errorf("%s: %d of %d bytes: %v", OpName(op), n, len(whole), err)
			}
		}
	}
	stat := &zk.Stat{}
	for op, want := range map[int32]Answer{
		OpDelete:       {},
		OpCreate:       {Path: "/a"},
		OpCreateTTL:    {Path: "/a"},
		OpSync:         {Path: "/"},
		OpExists:       {Stat: stat},
		OpGetData:      {Data: []byte("data"), Stat: stat},
		OpGetACL:       {ACL: zk.WorldACL(zk.PermAll), Stat: stat},
		OpGetChildren2: {Names: []string{"a", "", "another"}, Stat: stat},
		OpMulti: {Results: []Result{
			{Op: OpCreate, Path: "/a"}, {Op: OpSetData, Stat: stat}, {Op: OpDelete}, {Op: OpCheck}, {Op: OpError, Code: CodeNoNode},
		}},
	} {
		if got, _ := decode(op, bodies[op]); !cmp.Equal(want, got) {
			t.Errorf("%s (-want +got):\n%s", OpName(op), cmp.Diff(want, got))
		}
	}
	if a, err := decode(OpGetData, append(numbers(-1), aStat...)); err != nil || a.Data != nil {
		t.Errorf("no data: %v", err)
	}
	if a, err := decode(OpGetChildren2, append(numbers(0), aStat...)); err != nil || len(a.Names) > 0 {
		t.Errorf("no children: %v", err)
	}
}

// The fields of a stat are those of the protocol, in its order.
func TestDecodeStat(t *testing.T) {
	var e Encoder
	for i := range int64(4) {
		e.Int64(i + 1)
	}
	for i := range int32(3) {
		e.Int32(i + 5)
	}
	e.Int64(8)
	e.Int32(9)
	e.Int32(10)
	e.Int64(11)
	d := Decoder{Rest: e.B}
	want := &zk.Stat{
		Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7,
		EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11,
	}
	if got := DecodeStat(&d); !cmp.Equal(want, got) || d.whole() != nil {
		t.Errorf("(-want +got): %v\n%s", d.whole(), cmp.Diff(want, got))
	}
}

// FuzzAnswer checks that an answer that is taken is the same when it is encoded again, and that no answer makes room
// for more than is there.
func FuzzAnswer(f *testing.F) {
	ops := []int32{OpCreate, OpCreateTTL, OpExists, OpGetData, OpGetChildren2, OpMulti, OpDelete, OpGetACL}
	for i, op := range ops {
		f.Add(byte(i), bodies[op])
	}
	f.Add(byte(5), numbers(1))
	for _, n := range []int32{math.MaxInt32, 1 << 30, -1, -2} { // of bytes, and of names
		f.Add(byte(3), numbers(n, 0, 0))
		f.Add(byte(4), numbers(n, n, 0))
	}
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		op := ops[int(which)%len(ops)]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := decode(op, body)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > uint64(100*len(body)+1<<20) {
			t.Fatalf("%d bytes for a body of %d", grown, len(body))
		}
		if err != nil {
			return
		}
		again, err := decode(op, encodeAnswer(op, a))
		if err != nil || !reflect.DeepEqual(a, again) {
			t.Fatalf("%s: %+v, and encoded again (%v) %+v", OpName(op), a, err, again)
		}
	})
}

func encodeAnswer(op int32, a Answer) []byte {
	var e Encoder
	stat := func(s *zk.Stat) {
		for _, n := range []int64{s.Czxid, s.Mzxid, s.Ctime, s.Mtime} {
			e.Int64(n)
		}
		for _, n := range []int32{s.Version, s.Cversion, s.Aversion} {
			e.Int32(n)
		}
		e.Int64(s.EphemeralOwner)
		e.Int32(s.DataLength)
		e.Int32(s.NumChildren)
		e.Int64(s.Pzxid)
	}
	switch op {
	case OpCreate, OpCreateTTL:
		e.String(a.Path)
	case OpExists:
		stat(a.Stat)
	case OpGetData:
		e.Buffer(a.Data)
		stat(a.Stat)
	case OpGetACL:
		e.Int32(int32(len(a.ACL)))
		for _, one := range a.ACL {
			e.Int32(one.Perms)
			e.String(one.Scheme)
			e.String(one.ID)
		}
		stat(a.Stat)
	case OpGetChildren2:
		e.Strings(a.Names)
		stat(a.Stat)
	case OpMulti:
		for _, r := range a.Results {
			e.MultiHeader(r.Op, false, 0)
			switch r.Op {
			case OpError:
				e.Int32(r.Code)
			case OpCreate:
				e.String(r.Path)
			case OpSetData:
				stat(r.Stat)
			}
		}
		e.MultiHeader(OpError, true, -1)
	}
	return e.B
}
