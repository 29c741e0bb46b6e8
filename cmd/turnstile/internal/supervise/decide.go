package supervise

import (
	"fmt"
	"time"
)

// Limits say when a command is ended, by how long the lock is certain. Make them with [NewLimits].
type Limits struct {
	timeout time.Duration // of the session
	grace   time.Duration // SIGTERM when less remains
	reserve time.Duration // SIGKILL when less remains
}

// Parts of a session timeout. A healthy session is never less certain than for a third of its timeout:
// heartbeats see to that. So a grace period of up to a quarter ends no command for nothing.
const (
	defaultPart = 5
	longestPart = 4
	// shortestPart is what a command has to get after SIGTERM, which needs some time. The reserve is for the kernel to end all
	// processes of a group, on a machine that may be busy. The margin of the session's clock comes on top.
	shortestPart = 20
	reservePart  = 40
	// idlePart is how often turnstile moves the guard's deadline while all is well. So a turnstile that is stopped has
	// nearly all of the lease to go on in. It also looks once a second: a server can grant
	// a shorter timeout than the one before it.
	idlePart = 8
)

// NewLimits returns the limits for a grace period and the session timeout that the servers have granted. 0 stands for the
// default, a fifth of the timeout. If the grace period does not fit the timeout, NewLimits fails, and returns the limits
// with the nearest one that does: those are for a command that runs already.
func NewLimits(grace, timeout time.Duration) (Limits, error) {
	if grace == 0 {
		grace = timeout / defaultPart
	}
	shortest, longest := timeout/shortestPart, timeout/longestPart
	l := Limits{timeout: timeout, grace: min(max(grace, shortest), longest), reserve: timeout / reservePart}
	switch {
	case grace > longest:
		return l, fmt.Errorf("a grace period of %v needs a session timeout of %v or more, and %v was granted", grace, grace*longestPart, timeout)
	case grace < shortest:
		return l, fmt.Errorf("a grace period of %v is too short for a session timeout of %v: want %v or more", grace, timeout, shortest)
	}
	return l, nil
}

// start is how long the lock has to be certain before the command starts. With less, the command could get SIGTERM at once.
func (l Limits) start() time.Duration { return l.grace + l.reserve }

// view is all that a decision depends on.
type view struct {
	now       time.Duration // since some fixed moment, by a clock that counts suspensions
	lost      bool          // the lock is lost
	remaining time.Duration // of the lease; 0: the session is gone. If only the node was deleted, the session timeout
	running   bool          // the command runs, and not only its descendants
	give      bool          // somebody has asked for the lock
	told      time.Duration // when they got SIGTERM; 0: they have not
}

// decide returns whether the command and its descendants get SIGTERM now, when they get SIGKILL if nothing changes, and after
// which time to look again at the latest.
//
// They get SIGTERM when the lock's time comes to less than the grace period, when the lock's node was deleted, when
// somebody has asked for the lock, and when the command has ended and left other processes. They get SIGKILL when that is
// a grace period ago, when the reserve is reached, and when the session is gone. Processes that were told to end are not let
// off if the session recovers.
func (l Limits) decide(v view) (end bool, kill, next time.Duration) {
	end = v.told == 0 && (v.lost || v.remaining <= l.grace || v.give || !v.running)
	if end {
		v.told = v.now
	}
	kill, next = v.now+v.remaining-l.reserve, min(l.timeout/idlePart, time.Second, v.remaining-l.grace)
	if v.told != 0 {
		kill = min(kill, v.told+l.grace)
		next = min(l.reserve, 250*time.Millisecond, kill-v.now)
	}
	return end, kill, max(next, time.Millisecond)
}
