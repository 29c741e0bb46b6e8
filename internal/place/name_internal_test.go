package place

import (
	"errors"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/core"
)

func TestCheckName(t *testing.T) {
	for text, ok := range map[string]bool{
		"invoice":                    true,
		"größer als ß":               true,
		"billing/invoice v2":         true,
		strings.Repeat("x", 200):     true,
		strings.Repeat("ß", 100):     true,
		"":                           false,
		strings.Repeat("x", 201):     false,
		strings.Repeat("ß", 100)[1:]: false, // begins in the middle of a letter
		"\xff":                       false,
		"two\nlines":                 false,
		"\x1b[2J":                    false,
		"a\u2028b":                   false,
	} {
		err := CheckName(text)
		if (err == nil) != ok || err != nil && !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
