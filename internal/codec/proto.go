package codec

// The kinds of request. OpConnect and OpNotification stand for the handshake and for a watch event.
const (
	OpConnect              = -10
	OpClose                = -11
	OpError                = -1 // in the results of a multi: a failed operation, or the end
	OpNotification         = 0
	OpCreate               = 1
	OpDelete               = 2
	OpExists               = 3
	OpGetData              = 4
	OpSetData              = 5
	OpGetACL               = 6
	OpSetACL               = 7
	OpGetChildren          = 8
	OpSync                 = 9
	OpPing                 = 11
	OpGetChildren2         = 12 // its answer has a stat
	OpCheck                = 13
	OpMulti                = 14
	OpCreate2              = 15
	OpReconfig             = 16
	OpCheckWatches         = 17
	OpRemoveWatches        = 18
	OpCreateContainer      = 19
	OpDeleteContainer      = 20
	OpCreateTTL            = 21
	OpMultiRead            = 22
	OpAuth                 = 100
	OpSetWatches           = 101
	OpSASL                 = 102
	OpGetEphemerals        = 103
	OpGetAllChildrenNumber = 104
	OpSetWatches2          = 105
	OpAddWatch             = 106
	OpWhoAmI               = 107
)

// The kinds of watch in OpRemoveWatches. Those of exists are DataWatches.
const (
	ChildWatches = 1
	DataWatches  = 2
)

// The numbers of frames that belong to no numbered request.
const (
	XidEvent = -1
	XidPing  = -2 // and the answer to one
	XidAuth  = -4 // an identity, and the answer to one
)

const (
	EventCreated         = 1
	EventDeleted         = 2
	EventDataChanged     = 3
	EventChildrenChanged = 4
)

const (
	CodeOK                           = 0
	CodeSystemError                  = -1
	CodeRuntimeInconsistency         = -2
	CodeDataInconsistency            = -3
	CodeConnectionLoss               = -4
	CodeMarshallingError             = -5
	CodeUnimplemented                = -6
	CodeOperationTimeout             = -7
	CodeBadArguments                 = -8
	CodeUnknownSession               = -12
	CodeNewConfigNoQuorum            = -13
	CodeReconfigInProgress           = -14
	CodeAPIError                     = -100
	CodeNoNode                       = -101
	CodeNoAuth                       = -102
	CodeBadVersion                   = -103
	CodeNoChildrenForEphemeral       = -108
	CodeNodeExists                   = -110
	CodeNotEmpty                     = -111
	CodeSessionExpired               = -112
	CodeInvalidCallback              = -113
	CodeInvalidACL                   = -114
	CodeAuthFailed                   = -115
	CodeSessionMoved                 = -118
	CodeNotReadOnly                  = -119
	CodeEphemeralOnLocalSession      = -120
	CodeNoWatcher                    = -121
	CodeRequestTimeout               = -122
	CodeReconfigDisabled             = -123
	CodeSessionClosedRequireSASLAuth = -124
	CodeQuotaExceeded                = -125
	CodeThrottled                    = -127
)
