package ensemble

import "time"

// Report is what was found out. The names of the JSON fields are part of the output of the command.
type Report struct {
	Verdict  Verdict  `json:"verdict"`
	Problems []string `json:"problems"` // why no lock can be had
	Warnings []string `json:"warnings"`

	Servers []Server `json:"servers"`
	// Voters and Observers are the servers in the ensemble's own configuration, if it can be read.
	Voters    int `json:"voters,omitempty"`
	Observers int `json:"observers,omitempty"`
	// Following is how many voters follow the leader and have its transactions, as the leader says; nil: it does not say.
	Following *int `json:"following,omitempty"`

	Path       string        `json:"path"` // with the chroot
	Tried      string        `json:"tried,omitempty"`
	Rights     Rights        `json:"rights"`
	Containers Answer        `json:"containers"`
	Asked      time.Duration `json:"-"`
	Listed     int           `json:"-"` // servers in --zk
}

// Verdict is the result in a word.
type Verdict string

// The verdicts.
const (
	Good     Verdict = "good"
	Warned   Verdict = "warnings"
	Unusable Verdict = "unusable"
)

// Answer is yes, no or unknown.
type Answer string

// The answers.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

// Rights are what the identity may do at the path.
type Rights struct {
	Create Answer `json:"create"`
	Read   Answer `json:"read"`
	Delete Answer `json:"delete"`
}

// Server is what was found out about one address.
type Server struct {
	Name    string `json:"server"`          // as in --zk
	Address string `json:"address"`         // that was dialled
	Error   string `json:"error,omitempty"` // why it cannot be used
	Version string `json:"version,omitempty"`
	Role    string `json:"role,omitempty"`

	Read  Latency `json:"read"`
	Write Latency `json:"write"`

	Granted   Millis `json:"timeoutMs,omitempty"`         // the session timeout
	Shortest  Millis `json:"shortestTimeoutMs,omitempty"` // that the server grants; two ticks by default
	Remaining Millis `json:"remainingMs,omitempty"`       // the least that Session.Remaining was
	Run       Millis `json:"runRemainingMs,omitempty"`    // Remaining without the default grace period of run; Examine leaves it
	Skew      Millis `json:"clockAheadMs,omitempty"`      // how far the leader's clock is ahead of the one here
	Same      Answer `json:"sameEnsemble"`                // it has the node that another server was given

	ShortBuffer Answer `json:"shortBuffer"` // its jute.maxbuffer is smaller than the default
}

// Usable reports whether a session could be opened at the server.
func (s Server) Usable() bool { return s.Error == "" }

// Latency is that of one kind of request.
type Latency struct {
	Rounds int    `json:"rounds"`
	Median Millis `json:"medianMs"`
	P99    Millis `json:"p99Ms"`
}

// Millis is a time in milliseconds.
type Millis float64

func millis(d time.Duration) Millis { return Millis(d.Microseconds()) / 1000 }

// Duration returns the time.
func (m Millis) Duration() time.Duration {
	return time.Duration(float64(m) * float64(time.Millisecond))
}
