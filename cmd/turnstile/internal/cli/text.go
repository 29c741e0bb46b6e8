package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

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

// shellWord quotes a word for a shell, if it needs that.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.:@%+=,-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(clean(s), "'", `'\''`) + "'"
}

// short is clean, with at most n characters. What does not fit is left out at the end.
func short(text string, n int) string {
	if runes := []rune(clean(text)); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return clean(text)
}

// middle shortens a text that is clean to n characters, in its middle: of a path, both the beginning and the end tell much.
func middle(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:(n-1)/2]) + "…" + string(runes[len(runes)-n/2:])
	}
	return text
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
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i]), len(heading))
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
				fmt.Fprintf(&b, "%-*s  ", widths[i], cell)
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
	n, _, _ := term.GetSize(int(os.Stdout.Fd()))
	return n
}

// onPath completes a command whose argument is the path of a lock, or of a directory if root, which is the root if it is
// left out.
func onPath(cmd *cobra.Command, root bool, do func(ctx context.Context, path string) error) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	if root {
		cmd.Args = cobra.MaximumNArgs(1)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := pathArg(append(args, "/")[0], root)
		if err != nil {
			return err
		}
		return do(cmd.Context(), p)
	}
	return cmd
}

// pathArg returns the path in an argument, which may be the root if root. Slashes at the end do no harm. It does no I/O.
func pathArg(arg string, root bool) (string, error) {
	p := strings.TrimRight(arg, "/")
	if p == "" && arg != "" {
		p = "/"
	}
	err := misuse.ValidatePath(p)
	switch {
	case err != nil:
		return "", usagef("%s", strings.TrimPrefix(err.Error(), session.ErrInvalid.Error()+": "))
	case locks.IsSystem(p):
		return "", usagef("%s is ZooKeeper's own: no locks are there", p)
	case p == "/" && !root:
		return "", usagef("a lock has a directory of its own below /")
	}
	return p, nil
}
