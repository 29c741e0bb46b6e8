package zklock

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/label"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// WithLabel returns a context whose acquisitions have a label, such as "request 42". The label is
// in the contender's node, beside the id of the process, so that an operator sees what a lock is
// held for: see queue.Contender. It is for all locks of this module.
//
// A label has at most 256 bytes. A longer one is shortened, and ends in "…". What cannot be printed is escaped, as "\x0a" for
// a line break: a label that comes from a request must not make the lock fail. Nodes with data of your own (WithData) and those of
// [WithLocalHandover], which several acquisitions share, have no label.
func WithLabel(ctx context.Context, text string) context.Context {
	misuse.Context(ctx, "zklock: WithLabel")
	return label.With(ctx, text)
}
