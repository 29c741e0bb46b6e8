package hostile

import "testing"

// FuzzHostile plays scripts made of the fuzzer's bytes.
func FuzzHostile(f *testing.F) {
	for _, a := range attacks {
		f.Add(false, bytesOf(a.script...))
		f.Add(true, bytesOf(a.script...))
	}
	f.Fuzz(func(t *testing.T, unfair bool, data []byte) {
		log := attack(t, scriptOf(data), unfair)
		if t.Failed() {
			for _, line := range log {
				t.Log(line)
			}
		}
	})
}
