package chart

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Series is one bar in each group, of one colour; NaN stands for none.
type Series struct {
	Name   string
	Values []float64
}

// Bars writes a chart of groups of bars, each with a name below it, as a PNG to a file.
// All series have as many values as there are groups. A line marks 1.
func Bars(file, title, axis string, groups []string, series []Series) error {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = title, axis
	p.Y.Min = 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	const group = 60 // points
	width := vg.Points(group / float64(len(series)+1))
	for i, s := range series {
		if len(s.Values) != len(groups) {
			return fmt.Errorf("chart: %s has %d values for %d groups", s.Name, len(s.Values), len(groups))
		}
		values := make(plotter.Values, len(groups))
		for k, x := range s.Values {
			if !math.IsNaN(x) {
				values[k] = x
			}
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return fmt.Errorf("chart: %s: %w", s.Name, err)
		}
		bars.LineStyle.Width = 0
		bars.Color = plotutil.Color(i)
		bars.Offset = width * vg.Length(float64(i)-float64(len(series)-1)/2)
		p.Add(bars)
		p.Legend.Add(s.Name, bars)
	}
	one, err := plotter.NewLine(plotter.XYs{{X: -0.5, Y: 1}, {X: float64(len(groups)) - 0.5, Y: 1}})
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	one.Color = color.Gray{Y: 80}
	p.Add(one)
	p.NominalX(groups...)
	if err := p.Save(vg.Points(float64(140+group*13/10*len(groups))), vg.Points(330), file); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return nil
}
