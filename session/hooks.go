package session

import "github.com/turnstile-go/turnstile/hooks"

// The hooks of [WithTrace], what they are told, and the states of a manager: see package hooks.
type (
	Trace         = hooks.Trace
	RequestInfo   = hooks.RequestInfo
	RetryInfo     = hooks.RetryInfo
	WatchInfo     = hooks.WatchInfo
	NodeInfo      = hooks.NodeInfo
	AcquireInfo   = hooks.AcquireInfo
	AcquireResult = hooks.AcquireResult
	HoldInfo      = hooks.HoldInfo
	State         = hooks.State
	Change        = hooks.Change
)

// The states of a [Manager].
const (
	Connecting = hooks.Connecting
	Connected  = hooks.Connected
	Suspended  = hooks.Suspended
	Lost       = hooks.Lost
	Closed     = hooks.Closed
)
