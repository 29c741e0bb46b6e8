package queue_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/docexample"
)

// The example in the documentation is the one that runs.
func TestDocExample(t *testing.T) { docexample.Check(t) }
