//go:build linux

package clock

import "github.com/turnstile-go/turnstile/session"

// tickTold tells a manager the servers' tick.
var tickTold = session.WithTickTime(tick)
