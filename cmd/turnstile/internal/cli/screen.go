package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// screen is a terminal that shows one page.
type screen struct {
	out  io.Writer
	size func() (width, height int)
	keys <-chan byte // nil: there are none
	stop func()      // gives the terminal back
}

// Escape sequences that all terminals of today know.
const (
	escEnter = "\x1b[?1049h\x1b[?25l" // the other screen, without a cursor
	escLeave = "\x1b[?25h\x1b[?1049l"
	escHome  = "\x1b[H"
	escLine  = "\x1b[K\r\n" // clear the rest of the line
	escRest  = "\x1b[K\x1b[J"
)

// openScreen takes the terminal over, if a.In and the standard output are one. The caller must call stop.
func (a *App) openScreen() (*screen, bool) {
	in, isFile := a.In.(*os.File)
	out, isFileToo := a.stdout.(*os.File)
	if !isFile || !isFileToo || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, false
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, false
	}
	keys := make(chan byte)
	go readKeys(in, keys) // until the program ends: a read from a terminal cannot be ended
	s := &screen{
		out:  out,
		keys: keys,
		size: func() (int, int) {
			w, h, err := term.GetSize(int(out.Fd()))
			if err != nil || w < 1 || h < 1 {
				return 80, 24
			}
			return w, h
		},
	}
	s.stop = func() {
		fmt.Fprint(out, escLeave)
		_ = term.Restore(int(in.Fd()), before)
	}
	fmt.Fprint(out, escEnter)
	return s, true
}

// height returns the height of the terminal that gets the results, 0 if none does.
func (a *App) height() int {
	out, isFile := a.stdout.(*os.File)
	if !isFile {
		return 0
	}
	_, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return 0
	}
	return height
}

func readKeys(in io.Reader, keys chan<- byte) {
	var b [1]byte
	for {
		n, err := in.Read(b[:])
		if n > 0 {
			keys <- b[0]
		}
		if err != nil {
			return
		}
	}
}

// quits reports whether a key ends the program: q, Ctrl-C or Ctrl-D.
func quits(key byte) bool { return key == 'q' || key == 'Q' || key == 3 || key == 4 }

// draw shows lines, as many as there is room for. They must not have escape sequences.
func (s *screen) draw(lines []string) {
	width, height := s.size()
	var b bytes.Buffer
	b.WriteString(escHome)
	for i, line := range lines[:min(len(lines), height)] {
		if i > 0 {
			b.WriteString(escLine)
		}
		b.WriteString(cut(line, width))
	}
	b.WriteString(escRest)
	_, _ = s.out.Write(b.Bytes())
}
