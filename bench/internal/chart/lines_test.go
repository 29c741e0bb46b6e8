package chart

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

func TestLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.png")
	panel := Panel{Title: "heap, MiB", Lines: []Line{
		{Name: "under load", X: []float64{0, 1, 2}, Y: []float64{1, 3, 2}},
		{Name: "settled", X: []float64{0, 2}, Y: []float64{1, 1}, Dots: true},
		{Name: "empty"},
	}}
	if err := Lines(file, "minutes", 2, []Panel{panel, panel, {Title: "nothing yet"}}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	colors := make(map[[3]uint32]bool)
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			colors[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
		}
	}
	for _, want := range [][3]uint32{{150, 150, 150}, {20, 80, 170}} {
		if !colors[want] {
			t.Errorf("nothing is drawn in %v", want)
		}
	}
}

func TestLinesRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.png")
	for what, panels := range map[string][]Panel{
		"no panels":   nil,
		"uneven line": {{Title: "a", Lines: []Line{{Name: "b", X: []float64{1}}}}},
	} {
		if err := Lines(file, "minutes", 1, panels); err == nil {
			t.Errorf("%s: no error", what)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: a file was written", what)
		}
	}
	if err := Lines(file, "minutes", 0, []Panel{{}}); err == nil {
		t.Error("no columns: no error")
	}
}
