package simulation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The table fits the code: each text to change occurs exactly once.
func TestMutantTexts(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) { m.overlay(t) })
	}
}

// overlay writes the patched files and returns the file that says what they replace.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	patched := make(map[string]string)
	for _, e := range m.edits {
		name := filepath.Join(root, filepath.FromSlash(e.file))
		text, ok := patched[name]
		if !ok {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%s has the text to change %d times, not once; mend the table:\n%s", e.file, n, e.old)
		}
		patched[name] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := make(map[string]string)
	for name, text := range patched {
		out := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[name] = out
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(out, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}
