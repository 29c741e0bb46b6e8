package hostileservers

import "testing"

// FuzzHostile plays scripts made of the fuzzer's bytes.
func FuzzHostile(f *testing.F) {
	for i, a := range attacks { // TestAttacks has each with every lock
		f.Add(byte(i), bytesOf(a.script...))
	}
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		attack(t, scriptOf(data), kinds[int(kind)%len(kinds)])
	})
}
