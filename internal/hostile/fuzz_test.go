package hostile

import "testing"

// FuzzHostile plays scripts made of the fuzzer's bytes.
func FuzzHostile(f *testing.F) {
	for _, a := range attacks {
		for i := range kinds {
			f.Add(byte(i), bytesOf(a.script...))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		log := attack(t, scriptOf(data), kindOf(kind))
		if t.Failed() {
			for _, line := range log {
				t.Log(line)
			}
		}
	})
}
