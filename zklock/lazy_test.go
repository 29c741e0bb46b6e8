package zklock_test

import (
	"time"

	"github.com/turnstile-go/turnstile/zklock"
)

var lazy = zklock.WithLazyRelease(time.Minute)
