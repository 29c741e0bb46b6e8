package main

import (
	"context"
	"time"

	"github.com/turnstile-go/turnstile/bench/internal/usage"
	"github.com/turnstile-go/turnstile/zktest"
)

// sample has the resources in use at one time.
type sample struct {
	usage.Usage
	at time.Duration // since the beginning
}

// take samples everything but memory.
func take(ctx context.Context, e *zktest.Ensemble, start time.Time) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	u, err := usage.Take(ctx, e)
	return sample{u, time.Since(start)}, err
}
