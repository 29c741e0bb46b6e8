package wire

import (
	"encoding/binary"
	"slices"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// greetingFrame is the answer of a server to a handshake.
func greetingFrame(session int64, timeoutMillis int32) []byte {
	e := codec.NewFrame()
	e.Int32(0) // protocol version
	e.Int32(timeoutMillis)
	e.Int64(session)
	e.Buffer([]byte("0123456789abcdef"))
	e.Bool(false) // not read-only
	return e.Frame()
}

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
	resultHead = 9
	firstXid   = -1000 // the connection's own numbers count down from here
	firstCalls = 16    // how many calls leave at first
)

var aStat = make([]byte, 68)

// bodies has a well-formed answer to each kind of request that the tests send.
var bodies = map[int32][]byte{
	codec.OpCreate:  sized("/a"),
	codec.OpSync:    sized("/"),
	codec.OpGetData: append(sized("data"), aStat...),
	codec.OpMulti:   slices.Concat(result(codec.OpCheck, 0), result(-1, 1)),
}

func callFrame(op int32, path string) []byte {
	e := codec.NewFrame()
	e.Int32(0)
	e.Int32(op)
	e.String(path)
	return e.Frame()
}
