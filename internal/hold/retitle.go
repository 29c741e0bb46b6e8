package hold

import "strings"

// Retitle returns err with a title in front of its text. If the text begins with one of the old
// titles, the title replaces the first of them that matches. Titles end before ": ". So an error of a
// lower layer that names its own package or operation reads as one sentence about what the user
// called.
func Retitle(title string, err error, old ...string) error {
	text := err.Error()
	for _, o := range old {
		if rest, ok := strings.CutPrefix(text, o+": "); ok {
			text = rest
			break
		}
	}
	return &retitled{text: title + ": " + text, err: err}
}

type retitled struct {
	text string
	err  error
}

func (r *retitled) Error() string { return r.text }

func (r *retitled) Unwrap() error { return r.err }
