package otelzk

// All names of spans, attributes, events and metrics are in this file and in the tables of README.md. The first words of
// request spans, which are of kind CLIENT, are ZooKeeper's names of the operations. The second word is db.namespace, as in
// the conventions for databases.

// ScopeName is the name of the instrumentation scope of all spans and metrics.
const ScopeName = "github.com/turnstile-go/turnstile/otelzk"

// Spans of locks, of kind INTERNAL. They begin like the attributes and metrics, so that a backend that
// groups spans by name does not mix them with those of other libraries.
const (
	spanLock    = "zklock lock"
	spanTryLock = "zklock trylock"
	spanUnlock  = "zklock unlock"
	spanWatch   = "zklock watch"
	spanHold    = "zklock hold"
)

// Attributes of this package.
const (
	attrKind        = "zklock.kind"
	attrName        = "zklock.name"
	attrLabel       = "zklock.label"
	attrPath        = "zklock.path"
	attrNode        = "zklock.node"
	attrOutcome     = "zklock.outcome"
	attrPosition    = "zklock.queue.position"
	attrAttempts    = "zklock.attempts"
	attrWatchedPath = "zklock.watched.path"
	attrWatchedID   = "zklock.watched.id"
	attrWatchedFor  = "zklock.watched.label"
	attrWatched     = "zklock.watched.count"
	attrRequestPath = "zklock.request.path"
	attrState       = "zklock.session.state"
	attrRetryOp     = "zklock.retry.operation"
	attrRetryTry    = "zklock.retry.count"
)

// Attributes of the semantic conventions.
const (
	attrDBSystem    = "db.system.name"
	attrDBNamespace = "db.namespace"
	attrDBOperation = "db.operation.name"
	attrDBStatus    = "db.response.status_code"
	attrServerAddr  = "server.address"
	attrServerPort  = "server.port"
	attrPeerAddr    = "network.peer.address"
	attrPeerPort    = "network.peer.port"
	attrErrorType   = "error.type"
)

// dbSystem is the value of db.system.name.
const dbSystem = "zookeeper"

// Values of zklock.outcome.
const (
	outcomeAcquired = "acquired"
	outcomeBusy     = "busy"
	outcomeSettled  = "settled"
	outcomeCanceled = "canceled"
	outcomeTimeout  = "timeout"
	outcomeReleased = "released"
	outcomePending  = "pending"
	outcomeLost     = "lost"
	outcomeFailed   = "failed"
)

// Values of zklock.outcome of jobs. The others are busy, canceled, timeout and failed.
const (
	outcomeRan         = "ran"
	outcomeDone        = "done"
	outcomeOvertaken   = "overtaken"
	outcomeTriesUsedUp = "tries_used_up"
	outcomeSkipped     = "skipped"
	outcomeNotRun      = "not_run"
)

// Events on spans.
const (
	eventLoss  = "zklock.loss"
	eventRetry = "zklock.retry"
	eventState = "zklock.session.transition"
)

// Metrics.
const (
	metricAcquire     = "zklock.acquire.duration"
	metricHold        = "zklock.hold.duration"
	metricWaiters     = "zklock.waiter.count"
	metricHeld        = "zklock.held.count"
	metricLosses      = "zklock.losses"
	metricOutcomes    = "zklock.acquisitions"
	metricJobTicks    = "zklock.job.ticks"
	metricOldestHold  = "zklock.hold.oldest"
	metricOldestWait  = "zklock.wait.oldest"
	metricSession     = "zklock.session.status"
	metricTransitions = "zklock.session.transitions"
	metricRequest     = "db.client.operation.duration"
)

// Units of the metrics.
const (
	unitSeconds      = "s"
	unitWaiters      = "{waiter}"
	unitLocks        = "{lock}"
	unitLosses       = "{loss}"
	unitAcquisitions = "{acquisition}"
	unitTicks        = "{tick}"
	unitSessions     = "{session}"
	unitTransitions  = "{transition}"
)

// Values of error.type that no server has answered.
const (
	errSessionExpired   = "session_expired"
	errSessionUncertain = "session_uncertain"
	errSessionReplaced  = "session_replaced"
	errSessionSuspended = "session_suspended"
	errNodeDeleted      = "node_deleted"
	errLost             = "lost"
	errClosed           = "closed"
	errTimeout          = "timeout"
	errConflict         = "conflict"
	errSequence         = "sequence_used_up"
	errTooManyNodes     = "too_many_nodes"
	errTooLong          = "too_long"
	errInvalid          = "invalid"
	errOther            = "_OTHER"
)

// Values of error.type and of db.response.status_code: ZooKeeper's names of its codes.
const (
	codeSystemError                  = "SYSTEMERROR"
	codeRuntimeInconsistency         = "RUNTIMEINCONSISTENCY"
	codeDataInconsistency            = "DATAINCONSISTENCY"
	codeConnectionLoss               = "CONNECTIONLOSS"
	codeMarshallingError             = "MARSHALLINGERROR"
	codeUnimplemented                = "UNIMPLEMENTED"
	codeOperationTimeout             = "OPERATIONTIMEOUT"
	codeBadArguments                 = "BADARGUMENTS"
	codeAPIError                     = "APIERROR"
	codeNoNode                       = "NONODE"
	codeNoAuth                       = "NOAUTH"
	codeBadVersion                   = "BADVERSION"
	codeNoChildrenForEphemerals      = "NOCHILDRENFOREPHEMERALS"
	codeNodeExists                   = "NODEEXISTS"
	codeNotEmpty                     = "NOTEMPTY"
	codeSessionExpired               = "SESSIONEXPIRED"
	codeInvalidACL                   = "INVALIDACL"
	codeAuthFailed                   = "AUTHFAILED"
	codeSessionMoved                 = "SESSIONMOVED"
	codeNotReadOnly                  = "NOTREADONLY"
	codeEphemeralOnLocalSession      = "EPHEMERALONLOCALSESSION"
	codeRequestTimeout               = "REQUESTTIMEOUT"
	codeReconfigDisabled             = "RECONFIGDISABLED"
	codeSessionClosedRequireSASLAuth = "SESSIONCLOSEDREQUIRESASLAUTH"
	codeQuotaExceeded                = "QUOTAEXCEEDED"
	codeThrottledOp                  = "THROTTLEDOP"
)
