package schedule

import "time"

// Outcome says what a call of [Job.Run], [Job.TryRun] or [Job.CatchUp] has done about its tick, and why.
type Outcome int

// The outcomes. Only Ran says that the function was called.
const (
	NotRun      Outcome = iota // the error says why: it is never nil
	Ran                        // the function was called for the tick; the error is nil if the record says that the tick is done
	Done                       // the record says that the tick is done
	Overtaken                  // a later tick has begun, whether this one was run or not
	TriesUsedUp                // the tick was tried as often as it may be ([WithMaxTries]); the last try can be under way
	Busy                       // only of TryRun: another replica holds the lock, to run this tick or another
)

// String returns the outcome as the hook Job of [session.Trace] and package otelzk have it, such as tries_used_up.
func (o Outcome) String() string {
	switch o {
	case NotRun:
		return "not_run"
	case Ran:
		return "ran"
	case Done:
		return "done"
	case Overtaken:
		return "overtaken"
	case TriesUsedUp:
		return "tries_used_up"
	case Busy:
		return "busy"
	}
	return "unknown"
}

// standing returns what has become of a tick by the record, and NotRun if the tick is open.
func (j *Job) standing(last Record, tick time.Time) Outcome {
	switch c := tick.Compare(last.Tick); {
	case c < 0:
		return Overtaken
	case c > 0:
		return NotRun
	case last.Done:
		return Done
	case j.maxTries > 0 && last.Tries >= j.maxTries:
		return TriesUsedUp
	}
	return NotRun
}
