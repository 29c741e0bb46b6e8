package place

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/label"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/session"
)

// The node of a Local has neither a label nor a traceparent, although the hook is asked for one.
func TestDescribe(t *testing.T) {
	ctx := label.With(context.Background(), "request 42")
	asked := 0
	hooks := &session.Trace{Traceparent: func(context.Context) string { asked++; return "00-1-2-01" }}
	labelled := func(d nodedata.Data) nodedata.Data {
		d.Label, d.Traceparent = "request 42", "00-1-2-01"
		return d
	}
	for _, c := range []struct {
		r    Request
		want nodedata.Data
	}{
		{Request{}, labelled(nodedata.New())},
		{Request{handedOn: true}, nodedata.New()},
	} {
		if diff := cmp.Diff(c.want, c.r.describe(ctx, hooks)); diff != "" {
			t.Error(diff)
		}
	}
	if asked != 2 {
		t.Errorf("the hook was asked %d times, want 2", asked)
	}
}
