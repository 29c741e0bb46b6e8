package peerlink

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func hello(version, sid int64, addr string) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(version))
	b = binary.BigEndian.AppendUint64(b, uint64(sid))
	b = binary.BigEndian.AppendUint32(b, uint32(len(addr)))
	return append(b, addr...)
}

// The server with the greater number calls back at the address of the link. At the real
// address, it would get around a partition.
func TestCallBackAt(t *testing.T) {
	for name, tt := range map[string]struct{ said, want []byte }{
		"one address": {hello(electionV1, 2, "127.0.0.1:3888"), hello(electionV1, 2, "127.0.0.1:7")},
		"several":     {hello(electionV2, 1, "127.0.0.1:3888|10.0.0.1:3888"), hello(electionV2, 1, "127.0.0.1:7")},
		"number only": {binary.BigEndian.AppendUint64(nil, 3), binary.BigEndian.AppendUint64(nil, 3)},
	} {
		var got bytes.Buffer
		from := bytes.NewReader(append(tt.said, "rest"...))
		if err := callBackAt("127.0.0.1:7")(&got, from); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(got.Bytes(), tt.want) || from.Len() != len("rest") {
			t.Errorf("%s: passed on %q with %d bytes left, want %q", name, got.Bytes(), from.Len(), tt.want)
		}
	}
	for name, said := range map[string][]byte{
		"too long": hello(electionV1, 1, string(make([]byte, maxAddressText+1))),
		"cut":      hello(electionV1, 1, "127.0.0.1:3888")[:25],
	} {
		if err := callBackAt("127.0.0.1:7")(&bytes.Buffer{}, bytes.NewReader(said)); err == nil {
			t.Errorf("%s: passed on", name)
		}
	}
}
