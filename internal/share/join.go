package share

import (
	"slices"
	"strings"
)

// Join returns the errors that are not nil as one, like [errors.Join], but with a text of one line.
func Join(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return &joined{errs}
}

// joined is several errors.
type joined struct{ errs []error }

// Unwrap returns all of them.
func (j *joined) Unwrap() []error { return j.errs }

// Error says each thing once.
func (j *joined) Error() string {
	var texts []string
	for _, err := range j.errs {
		if text := oneLine(err.Error()); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// oneLine returns a text without line breaks.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
