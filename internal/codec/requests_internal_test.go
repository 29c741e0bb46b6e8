package codec

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestAuthFrame(t *testing.T) {
	xid := int32(XidAuth)
	var want []byte
	for _, n := range []uint32{28, uint32(xid), OpAuth, 0, 6} {
		want = binary.BigEndian.AppendUint32(want, n)
	}
	want = append(append(want, "digest"...), 0, 0, 0, 2, 'u', ':')
	if got := (Identity{"digest", []byte("u:")}).Frame(); !bytes.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
