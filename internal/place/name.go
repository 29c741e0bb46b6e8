package place

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnstile-go/turnstile/internal/core"
)

// longestName is the length of the longest name of a lock, in bytes.
const longestName = 200

// SetName is WithName. Its error matches ErrInvalid.
func (r *Request) SetName(text string) error {
	r.Name = text
	return CheckName(text)
}

// CheckName returns an error if text is not a good name for metrics and spans: it is empty, too long, or cannot be
// printed. The error matches ErrInvalid.
func CheckName(text string) error {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case text == "":
		return fmt.Errorf("%w: empty name", core.ErrInvalid)
	case len(text) > longestName:
		return fmt.Errorf("%w: a name of %d bytes: the limit is %d", core.ErrInvalid, len(text), longestName)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable):
		return fmt.Errorf("%w: name %q cannot be printed", core.ErrInvalid, text)
	}
	return nil
}
