package hold

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An error is news if it differs from the last one by more than the name of a node, if a minute has passed, or if a call has
// succeeded in between.
func TestComplaints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c complaints
		for _, step := range []struct {
			after time.Duration
			text  string
			over  bool // a success comes before
			want  bool
		}{
			{text: "create /a/_c_0f3a-77be-lock-: no auth", want: true},
			{text: "create /a/_c_41de-0b11-lock-: no auth"},
			{after: 59 * time.Second, text: "create /a/_c_99ee-aa00-lock-: no auth"},
			{after: time.Second, text: "create /a/_c_99ee-aa00-lock-: no auth", want: true},
			{text: "session 0x1a: conflict", want: true},
			{text: "session 0x2b: conflict"},
			{text: "session 0x2b: conflict", over: true, want: true},
		} {
			time.Sleep(step.after)
			if step.over {
				c.over()
			}
			if got := c.isNews(errors.New(step.text)); got != step.want {
				t.Errorf("after %v, %q: news %v, want %v", step.after, step.text, got, step.want)
			}
		}
	})
}
