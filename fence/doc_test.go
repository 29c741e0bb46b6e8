package fence_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/docexample"
)

// The example in the package documentation is the one that is compiled.
func TestDocExample(t *testing.T) { docexample.Check(t) }
