package election_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// A nil context and an object that was not made by its constructor panic, before anything is sent or changed.
func TestMisuse(t *testing.T) {
	misusetest.Check(t, misusetest.Package{
		Name:    "election",
		Objects: []misusetest.Object{{Zero: &election.Election{}, Made: newElection(t, connect(t), testserver.Path(t))}},
		Funcs:   map[string]func(context.Context){"Term": func(ctx context.Context) { _, _ = election.Term(ctx) }},
	})
}
