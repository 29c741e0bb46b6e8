package chart

import (
	"errors"
	"fmt"
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Panel is one of several plots over the same time.
type Panel struct {
	Title string // what the y axis is, with its unit
	Lines []Line
}

// Line is one series of a panel.
type Line struct {
	Name string
	X, Y []float64
	Dots bool // whether each point is marked: the measurements that count
}

const panelWidth, panelHeight = 11 * vg.Centimeter, 6 * vg.Centimeter

var (
	faint = color.RGBA{R: 150, G: 150, B: 150, A: 255}
	bold  = color.RGBA{R: 20, G: 80, B: 170, A: 255}
)

// Lines draws panels into a PNG file, columns of them side by side, with the same label
// below each. Lines with dots are bold, those without faint. The y axes begin at zero, so
// that what looks flat is flat.
func Lines(file, xLabel string, columns int, panels []Panel) error {
	if columns < 1 || len(panels) == 0 {
		return errors.New("chart: nothing to draw")
	}
	rows := (len(panels) + columns - 1) / columns
	img := vgimg.New(vg.Length(columns)*panelWidth, vg.Length(rows)*panelHeight)
	tiles := draw.Tiles{Cols: columns, Rows: rows, PadX: vg.Centimeter / 2, PadY: vg.Centimeter / 2,
		PadTop: vg.Centimeter / 4, PadBottom: vg.Centimeter / 4, PadLeft: vg.Centimeter / 4, PadRight: vg.Centimeter / 4}
	canvas := draw.New(img)
	for i, panel := range panels {
		p, err := panel.plot(xLabel)
		if err != nil {
			return fmt.Errorf("chart: %s: %w", panel.Title, err)
		}
		p.Draw(tiles.At(canvas, i%columns, i/columns))
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	_, err = vgimg.PngCanvas{Canvas: img}.WriteTo(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return nil
}

func (panel Panel) plot(xLabel string) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = panel.Title
	p.X.Label.Text = xLabel
	p.Legend.Top = true
	p.Legend.Left = true
	p.Add(plotter.NewGrid())
	for _, line := range panel.Lines {
		if len(line.X) != len(line.Y) {
			return nil, fmt.Errorf("line %s has %d x and %d y", line.Name, len(line.X), len(line.Y))
		}
		points := make(plotter.XYs, len(line.X))
		for i := range points {
			points[i] = plotter.XY{X: line.X[i], Y: line.Y[i]}
		}
		if len(points) == 0 {
			continue
		}
		drawn, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		drawn.Color, drawn.Width = faint, vg.Points(0.5)
		if line.Dots {
			drawn.Color, drawn.Width = bold, vg.Points(1)
			dots.Color, dots.Shape, dots.Radius = bold, draw.CircleGlyph{}, vg.Points(1.5)
			p.Add(drawn, dots)
		} else {
			p.Add(drawn)
		}
		p.Legend.Add(line.Name, drawn)
	}
	p.Y.Min = 0
	p.Y.Max = max(1, p.Y.Max*1.25) // room for the legend
	return p, nil
}
