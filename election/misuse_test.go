package election_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
)

// A nil context and an object that was not made by its constructor panic, before anything is sent or changed.
func TestMisuse(t *testing.T) {
	inBubble(t, func(t *world) {
		misusetest.Check(t.T, misusetest.Package{
			Name:    "election",
			Objects: []misusetest.Object{{Zero: &election.Election{}, Made: t.election()}},
			Funcs:   map[string]func(context.Context){"Term": func(ctx context.Context) { _, _ = election.Term(ctx) }},
		})
	})
}
