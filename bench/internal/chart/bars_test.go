package chart

import (
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestBars(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bars.png")
	series := []Series{{"a", []float64{1, 2}}, {"b", []float64{math.NaN(), 0.5}}}
	if err := Bars(file, "title", "axis", []string{"one", "two"}, series); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
}

func TestBarsRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bars.png")
	if err := Bars(file, "", "", []string{"one", "two"}, []Series{{"a", []float64{1}}}); err == nil {
		t.Error("a series with a value too few was drawn")
	}
}
