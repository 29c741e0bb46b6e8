package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean returns a text from a node so that a terminal can show it: characters that are not printable,
// with which the text could send escape sequences or change the direction of writing, are escaped.
func clean(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unprintable(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// escapeJSON escapes what a terminal should not get. In JSON it can only be in strings, except for the
// line break at the end.
func escapeJSON(data []byte) []byte {
	var out []byte
	for _, r := range string(data) {
		switch {
		case r == '\n' || !unprintable(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			hi, lo := surrogates(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// surrogates returns the two halves by which JSON escapes a character beyond the basic plane.
func surrogates(r rune) (hi, lo rune) {
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}

// printJSON writes one JSON value and a line break. Texts from nodes send no escape sequences.
func (a *App) printJSON(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = a.Out.Write(append(escapeJSON(data), '\n'))
	return err
}

// stamp is a time in the zone of the user, which it names: RFC 3339.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return t.Local().Format(time.RFC3339)
}

// ago returns how long ago t was, for people: "12s", "3m4s", "5h12m", "3d4h". t is by the clock of the
// servers, which can be ahead of the one here.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return span(now.Sub(t))
}

// span returns a duration for people, with two units at most.
func span(d time.Duration) string {
	d = max(0, d)
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// count returns "1 lock" or "3 locks".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
