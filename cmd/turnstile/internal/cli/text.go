package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/session"
)

// clean returns a text from a node so that a terminal can show it: if it has characters that are not printable,
// with which it could send escape sequences or change the direction of writing, it is escaped as in Go.
func clean(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
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
		if unicode.IsPrint(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, half := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, half)
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
	if n == 0 {
		return strings.ReplaceAll("nobody "+other+"waits", "other", "else")
	}
	return count(n, other+"contender waits", other+"contenders wait")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

var plainWord = regexp.MustCompile(`^[a-zA-Z0-9/_.:@%+=,-]+$`)

// shellWord quotes a word for a shell, if it needs that.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(clean(s), "'", `'\''`) + "'"
}

// cells counts the columns of a terminal: two for a character of Chinese, Japanese or Korean and for an emoji, none for an
// accent that stands on the character before it. It does not go by the locale.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// short is clean, with at most n columns. What does not fit is left out at the end.
func short(text string, n int) string { return cells.Truncate(clean(text), n, "…") }

// middle shortens a text that is clean to n columns, in its middle: of a path, both the beginning and the end tell much.
func middle(text string, n int) string {
	width := cells.StringWidth(text)
	if width <= n {
		return text
	}
	head := (n - 1) / 2
	tail := n - 1 - head
	return cells.Truncate(text, head, "") + "…" + strings.TrimLeft(cells.TruncateLeft(text, width-tail, ""), " ")
}

// table lines up columns, two spaces apart, and leaves out those that are empty. Its cells are clean. On a terminal that is too
// narrow, the cells of one column are shortened in their middle, and all others stay as they are.
type table struct {
	rows     [][]string // the first has the headings. Others may have fewer cells
	flexible int        // the index of that column
}

func newTable(headings ...string) *table { return &table{rows: [][]string{headings}} }

func (t *table) row(texts ...string) { t.rows = append(t.rows, texts) }

// print writes the table. room is the width of the terminal, or 0.
func (t *table) print(to io.Writer, room int) {
	widths, total := make([]int, len(t.rows[0])), -2
	for i, heading := range t.rows[0] {
		for _, row := range t.rows[1:] {
			if i < len(row) && row[i] != "" {
				widths[i] = max(widths[i], cells.StringWidth(row[i]), cells.StringWidth(heading))
			}
		}
		if widths[i] > 0 {
			total += widths[i] + 2
		}
	}
	const least = 12
	if room > 0 && total > room {
		widths[t.flexible] = max(least, widths[t.flexible]-(total-room))
	}
	for _, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			if i == t.flexible {
				cell = middle(cell, widths[i])
			}
			if widths[i] > 0 {
				b.WriteString(cells.FillRight(cell, widths[i]) + "  ")
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

// onPrefix completes a command whose argument is a path, that of the root if it is left out.
func onPrefix(cmd *cobra.Command, do func(ctx context.Context, prefix string) error) *cobra.Command {
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := pathArg(append(args, "/")[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), p)
	}
	return cmd
}

// onLock completes a command whose argument is the path of a lock.
func onLock(cmd *cobra.Command, do func(ctx context.Context, lock string) error) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := lockArg(args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), p)
	}
	return cmd
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
