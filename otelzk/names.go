package otelzk

import "go.opentelemetry.io/otel/attribute"

// ScopeName is the name of the instrumentation scope of all spans and metrics. README.md explains all names.
const ScopeName = "github.com/turnstile-go/turnstile/otelzk"

// Attributes of this package. Others are those of the semantic conventions.
const (
	attrKind        = attribute.Key("zklock.kind")
	attrName        = attribute.Key("zklock.name")
	attrLabel       = attribute.Key("zklock.label")
	attrPath        = attribute.Key("zklock.path")
	attrNode        = attribute.Key("zklock.node")
	attrOutcome     = attribute.Key("zklock.outcome")
	attrPosition    = attribute.Key("zklock.queue.position")
	attrAttempts    = attribute.Key("zklock.attempts")
	attrWatchedPath = attribute.Key("zklock.watched.path")
	attrWatchedID   = attribute.Key("zklock.watched.id")
	attrWatchedFor  = attribute.Key("zklock.watched.label")
	attrWatched     = attribute.Key("zklock.watched.count")
	attrRequestPath = attribute.Key("zklock.request.path")
	attrState       = attribute.Key("zklock.session.state")
)

// Values of zklock.outcome.
const (
	outcomeAcquired = "acquired"
	outcomeBusy     = "busy"
	outcomeSettled  = "settled"
	outcomeCanceled = "canceled"
	outcomeTimeout  = "timeout"
	outcomeReleased = "released"
	outcomePending  = "pending"
	outcomeLate     = "late" // only of the metric of releases
	outcomeLost     = "lost"
	outcomeFailed   = "failed"
	outcomeRan      = "ran" // this one and the next two are of jobs
	outcomeDone     = "done"
	outcomeNotRun   = "not_run"
)

// What a metric can have as zklock.outcome or error.type. Its counters begin at 0 for each of these.
var (
	acquireOutcomes = []string{outcomeAcquired, outcomeBusy, outcomeSettled, outcomeCanceled, outcomeTimeout, outcomeFailed}
	releaseOutcomes = []string{outcomeReleased, outcomeLate, outcomeLost, outcomeFailed}
	jobOutcomes     = []string{outcomeRan, outcomeDone, "overtaken", "tries_used_up", "skipped", outcomeNotRun,
		outcomeBusy, outcomeCanceled, outcomeTimeout, outcomeFailed}
	lossReasons = []string{"session_expired", "session_uncertain", "session_replaced", "session_suspended", "node_deleted", "lost"}
)
