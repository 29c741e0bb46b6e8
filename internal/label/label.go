// Package label carries the label of an acquisition in its context, from zklock.WithLabel to package
// queue, which writes it into the contender's node.
package label

import "context"

type key struct{}

// With returns a context with a label.
func With(ctx context.Context, text string) context.Context {
	return context.WithValue(ctx, key{}, text)
}

// From returns the label of ctx, or "" if it has none.
func From(ctx context.Context) string {
	text, _ := ctx.Value(key{}).(string)
	return text
}
