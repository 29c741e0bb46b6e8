package main

import (
	"fmt"
	"math"
)

// unit is how a number is shown, and whether more of it is better.
type unit struct {
	more   bool
	speed  bool
	ratio  bool // to that of rivals says something
	format func(float64) string
}

var (
	seconds   = unit{speed: true, ratio: true, format: formatSeconds}
	perSecond = unit{more: true, speed: true, ratio: true, format: func(x float64) string { return digits(x) + "/s" }}
	count     = unit{format: func(x float64) string { return fmt.Sprintf("%.2f", x) }}
	whole     = unit{format: func(x float64) string { return fmt.Sprintf("%.0f", x) }}
	processor = unit{ratio: true, format: formatSeconds}
	remaining = unit{more: true, format: formatSeconds}
	// frequency is perSecond of what is no lock.
	frequency = unit{more: true, ratio: true, format: perSecond.format}
	// unburdened is frequency where no rival has a part in it.
	unburdened = unit{more: true, format: perSecond.format}
	inBytes    = unit{ratio: true, format: func(x float64) string { return digits(x/1000) + " kB" }}
)

func formatSeconds(x float64) string {
	if x >= 1 {
		return digits(x) + " s"
	}
	return digits(x*1e3) + " ms"
}

// digits shows three digits, and all digits before the point.
func digits(x float64) string {
	switch abs := math.Abs(x); {
	case abs < 10:
		return fmt.Sprintf("%.2f", x)
	case abs < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
