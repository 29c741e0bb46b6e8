package schedule_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/schedule"
)

// A nil context and an object that was not made by its constructor panic, before anything is sent or changed.
func TestMisuse(t *testing.T) {
	misusetest.Check(t, misusetest.Package{
		Name:    "schedule",
		Objects: []misusetest.Object{{Zero: &schedule.Job{}, Made: newJob(t, connect(t), testserver.Path(t))}},
		Values:  []any{schedule.Outcome(0), &schedule.SkippedError{}},
	})
}
