package core

import "github.com/turnstile-go/turnstile/hooks"

// canFollow is the transition function. It reports whether a manager in state from
// may go to state to. It refuses late news of a session that is gone already.
func canFollow(from, to hooks.State) bool {
	switch {
	case from == hooks.Closed || from == to:
		return false
	case to == hooks.Closed:
		return true
	}
	switch from {
	case hooks.Connecting:
		return to == hooks.Connected
	case hooks.Connected:
		return to == hooks.Suspended || to == hooks.Lost
	case hooks.Suspended:
		return to == hooks.Connected || to == hooks.Lost
	case hooks.Lost:
		return to == hooks.Connecting
	}
	return false
}
