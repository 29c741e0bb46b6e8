package lockz

import "time"

// The types of this file are the page as JSON. docs/lockz.md says for users what the fields are.

type pageJSON struct {
	ID       string        `json:"id"`
	Time     time.Time     `json:"time"`
	Totals   totalsJSON    `json:"totals"`
	Managers []managerJSON `json:"managers"`
}

// totalsJSON is of all managers of the page.
type totalsJSON struct {
	Connected   int     `json:"connected"`
	Holds       int     `json:"holds"`
	Waits       int     `json:"waits"`
	LongestWait float64 `json:"longest_wait_seconds"`
	Losses      int     `json:"losses"`
}

type managerJSON struct {
	Ensemble            string       `json:"ensemble"`
	State               string       `json:"state"`
	StateSince          time.Time    `json:"state_since,omitzero"` // zero if the state has not changed since Recording
	Server              string       `json:"server,omitempty"`
	Failure             string       `json:"failure,omitempty"`
	TimeoutAskedSeconds float64      `json:"timeout_asked_seconds"`
	Session             *sessionJSON `json:"session,omitempty"`

	Recording        time.Time        `json:"recording"`
	Elections        []electionJSON   `json:"elections"`
	Holds            []holdJSON       `json:"holds"`
	Waits            []waitJSON       `json:"waits"`
	Losses           []lossJSON       `json:"losses"`
	LossCount        int              `json:"loss_count"`
	SessionLossCount int              `json:"session_loss_count"`
	LastSessionLoss  *sessionLossJSON `json:"last_session_loss,omitempty"`
}

// lockJSON says which lock a hold, a wait or a loss is of.
type lockJSON struct {
	Kind  string `json:"kind"`
	Name  string `json:"name,omitempty"`
	Path  string `json:"path"`
	Label string `json:"label,omitempty"`
}

type sessionJSON struct {
	ID               string  `json:"id"`
	TimeoutSeconds   float64 `json:"timeout_seconds"`
	RemainingSeconds float64 `json:"remaining_seconds"`
}

// electionJSON is an election of which this process has a candidate.
type electionJSON struct {
	Name   string `json:"name,omitempty"`
	Path   string `json:"path"`
	Here   bool   `json:"here,omitempty"` // the leader is of this process
	Leader string `json:"leader,omitempty"`
	Label  string `json:"label,omitempty"`
}

type holdJSON struct {
	lockJSON
	Node             string    `json:"node"`
	Weight           int       `json:"weight"`
	Since            time.Time `json:"since"`
	Seconds          float64   `json:"seconds"`
	Token            int64     `json:"token,omitempty"`
	RemainingSeconds float64   `json:"remaining_seconds"`
	Traceparent      string    `json:"traceparent,omitempty"`
}

type waitJSON struct {
	lockJSON
	Weight      int         `json:"weight"`
	Try         bool        `json:"try,omitempty"`
	Since       time.Time   `json:"since"`
	Seconds     float64     `json:"seconds"`
	Behind      *behindJSON `json:"behind,omitempty"`
	AheadHere   int         `json:"ahead_here,omitempty"`
	Traceparent string      `json:"traceparent,omitempty"`
}

type behindJSON struct {
	Node        string    `json:"node"`
	Here        bool      `json:"here,omitempty"` // its session is that of a manager of the page
	ID          string    `json:"id,omitempty"`
	Label       string    `json:"label,omitempty"`
	Traceparent string    `json:"traceparent,omitempty"`
	Since       time.Time `json:"since"`
	Seconds     float64   `json:"seconds"`
	Ahead       int       `json:"ahead"`
	Holds       bool      `json:"holds,omitempty"` // it is known to hold the lock
}

type lossJSON struct {
	lockJSON
	Time  time.Time `json:"time"`
	Node  string    `json:"node"`
	Since time.Time `json:"since,omitzero"` // zero if the grant was before Recording
	Cause string    `json:"cause"`
}

type sessionLossJSON struct {
	Time  time.Time `json:"time"`
	ID    string    `json:"id"`
	Cause string    `json:"cause"`
}
