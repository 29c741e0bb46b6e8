// Package label carries the label of an acquisition in its context, from queue.WithLabel to package
// queue, which writes it into the contender's node.
package label

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Longest is the length of the longest label, in bytes.
const Longest = 256

type key struct{}

// With returns a context with a label. A label is short and has no control characters, so With makes it so.
func With(ctx context.Context, text string) context.Context {
	return context.WithValue(ctx, key{}, tidy(text))
}

// From returns the label of ctx, or "" if it has none.
func From(ctx context.Context) string {
	text, _ := ctx.Value(key{}).(string)
	return text
}

// tidy escapes what cannot be printed, as in a string of Go, and shortens what is too long.
func tidy(text string) string {
	const more = "…"
	var b strings.Builder
	fits := 0 // so many bytes of b are followed by "…" if there is more
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		if b.Len() > Longest {
			return b.String()[:fits] + more
		}
		if b.Len() <= Longest-len(more) {
			fits = b.Len()
		}
		i += size
	}
	return b.String()
}
