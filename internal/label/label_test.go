package label_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/turnstile-go/turnstile/internal/label"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWith(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for text, want := range map[string]string{
		"":                   "",
		"request 42":         "request 42",
		"größer als ß":       "größer als ß",
		"two\nlines":         `two\x0alines`,
		"\x1b[2J":            `\x1b[2J`,
		"\xff":               `\xff`,
		"a\u2028b":           `a\u2028b`,
		x(256):               x(256),
		x(257):               x(253) + "…",
		x(255) + "ß":         x(253) + "…",
		x(254) + "ß":         x(254) + "ß",
		x(252) + "ßxxx":      x(252) + "…",
		x(251) + "\n" + x(9): x(251) + "…",
	} {
		if got := label.From(label.With(t.Context(), text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzWith(f *testing.F) {
	f.Add("request 42\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := label.From(label.With(t.Context(), text))
		if len(got) > label.Longest || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q: %q", text, got)
		}
	})
}
