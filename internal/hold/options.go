package hold

import (
	"fmt"

	"github.com/turnstile-go/turnstile/session"
)

// ApplyAll applies every option and joins the errors. A nil option is an error.
func ApplyAll[O comparable](opts []O, apply func(O) error) error {
	var none O
	var errs []error
	for _, o := range opts {
		if o == none {
			errs = append(errs, fmt.Errorf("%w: nil option", session.ErrInvalid))
			continue
		}
		errs = append(errs, apply(o))
	}
	return Join(errs...)
}
