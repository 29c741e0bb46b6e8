package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"golang.org/x/text/width"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/session"
)

// clean returns a text from a node so that a terminal can show it: characters that are not printable,
// with which the text could send escape sequences or change the direction of writing, are escaped.
func clean(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

// printJSON writes one JSON value and a line break. What a terminal should not get is escaped, which in JSON can only be in
// strings.
func (a *App) printJSON(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var out []byte
	for _, r := range string(data) {
		switch {
		case unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff: // the two halves by which JSON escapes a character beyond the basic plane
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	_, err = a.Out.Write(append(out, '\n'))
	return err
}

// count returns "1 lock" or "3 locks".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// waiting says how many contenders wait. other is "other " or "".
func waiting(n int, other string) string {
	switch {
	case n == 0 && other != "":
		return "nobody else waits"
	case n == 0:
		return "nobody waits"
	case n == 1:
		return "1 " + other + "contender waits"
	}
	return fmt.Sprintf("%d %scontenders wait", n, other)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// shellWord quotes a word for a shell, if it needs that.
func shellWord(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_.:@%+=-,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(clean(s), "'", `'\''`) + "'"
}

// columns returns how many columns of a terminal a text takes that was cleaned: two for a character of Chinese, Japanese or
// Korean and for an emoji, none for an accent that stands on the character before it.
func columns(text string) (n int) {
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if r < 0x300 {
		return 1 // nothing else is that low
	}
	if unicode.In(r, unicode.Mn, unicode.Me) || r >= 0x1160 && r <= 0x11ff { // the latter are parts of a Korean syllable
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// short is clean, with at most n columns. What does not fit is left out at the end.
func short(text string, n int) string {
	text = clean(text)
	if columns(text) <= n {
		return text
	}
	used := 0
	for i, r := range text {
		if used += columnsOf(r); used > n-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// middle shortens a text that is clean to n columns, in its middle: of a path, both the beginning and the end tell much.
func middle(text string, n int) string {
	if columns(text) <= n {
		return text
	}
	head, tail := (n-1)/2, n-1-(n-1)/2
	runes := []rune(text)
	from, to := 0, len(runes)
	for used := 0; from < to; from++ {
		if used += columnsOf(runes[from]); used > head {
			break
		}
	}
	for used := 0; to > from; to-- {
		if used += columnsOf(runes[to-1]); used > tail {
			break
		}
	}
	return string(runes[:from]) + "…" + string(runes[to:])
}

// table lines up columns, two spaces apart. Its cells are clean. On a terminal that is too narrow, the cells of one column are
// shortened in their middle, and all others stay as they are.
type table struct {
	rows     [][]string
	flexible int // the index of that column
}

func newTable(headings ...string) *table { return &table{rows: [][]string{headings}} }

// row adds a line. It may have fewer cells than there are columns.
func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	return widths
}

// print writes the table. room is the width of the terminal, or 0. Empty cells at the end leave no spaces behind.
func (t *table) print(to io.Writer, room int) {
	widths := t.widths()
	total := -2
	for _, w := range widths {
		total += w + 2
	}
	const least = 12
	if most := max(least, widths[t.flexible]-(total-room)); room > 0 && total > room {
		for _, row := range t.rows {
			if t.flexible < len(row) {
				row[t.flexible] = middle(row[t.flexible], most)
			}
		}
		widths = t.widths()
	}
	for _, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]+2-columns(cell)))
			}
		}
		fmt.Fprintln(to, strings.TrimRight(b.String(), " "))
	}
}

// room returns the width of the terminal that shows the results, as the variable COLUMNS or the terminal says, or 0.
func (a *App) room() int {
	if n, err := strconv.Atoi(a.Env("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if n, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		return n
	}
	return 0
}

// pathArg returns the path in an argument. Slashes at the end do no harm. It does no I/O.
func pathArg(arg string) (string, error) {
	p := strings.TrimRight(arg, "/")
	if p == "" && arg != "" {
		p = "/"
	}
	if err := misuse.ValidatePath(p); err != nil {
		return "", usagef("%s", strings.TrimPrefix(err.Error(), session.ErrInvalid.Error()+": "))
	}
	if locks.IsSystem(p) {
		return "", usagef("%s is ZooKeeper's own: no locks are there", p)
	}
	return p, nil
}

// lockArg is pathArg for a lock, which cannot be at the root.
func lockArg(arg string) (string, error) {
	p, err := pathArg(arg)
	if err == nil && p == "/" {
		return "", usagef("a lock has a directory of its own below /")
	}
	return p, err
}

var errWaited = errors.New("the time to wait is over")
