package locks

import (
	"regexp"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
)

// Contender is a holder or a waiter. The names of its JSON fields are part of the output of the command.
// Texts from the node are as they are, and must be escaped before a terminal gets them.
type Contender struct {
	Node     string `json:"node"`     // the name of the node
	Path     string `json:"path"`     // of the node
	Sequence int32  `json:"sequence"` // lower is earlier
	Holds    bool   `json:"holds"`    // false: it waits
	Mode     string `json:"mode,omitempty"`
	Leases   int    `json:"leases,omitempty"` // of a semaphore: how many it holds or asks for

	// Known says that the node has been read. Otherwise the rest is empty.
	Known       bool      `json:"-"`
	ID          string    `json:"id,omitempty"`
	Label       string    `json:"label,omitempty"`
	Traceparent string    `json:"traceparent,omitempty"`
	Since       time.Time `json:"since,omitzero"` // when it came to the queue, by the servers' clock
	Session     string    `json:"session,omitempty"`
	ByHand      bool      `json:"byHand,omitempty"` // no session owns the node: nobody will delete it
	Revoked     bool      `json:"revoked,omitempty"`
	Deaf        bool      `json:"-"` // it is of an earlier state, and says that it does not hear a revocation
	Token       int64     `json:"token,omitempty"`
	Client      string    `json:"client,omitempty"` // see clientOf

	Data    []byte `json:"-"`
	Written int64  `json:"-"` // the transaction that wrote Data
	Owner   int64  `json:"-"`
}

// Name returns a word for a contender in messages: its ID, or else its session.
func (c Contender) Name() string {
	switch {
	case c.ID != "":
		return c.ID
	case c.ByHand:
		return "nobody"
	case c.Session != "":
		return "session " + c.Session
	}
	return "?"
}

// Clients, as far as names and data tell them apart.
const (
	ClientOurs    = "turnstile"
	ClientCurator = "curator"
	ClientEither  = "turnstile or curator"
	ClientKazoo   = "kazoo"
	ClientZKLock  = "zk.Lock"
	ClientHand    = "by hand"
)

var (
	dashed   = regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-`)
	undashed = regexp.MustCompile(`^_c_[0-9a-f]{32}-`)
	kazoos   = regexp.MustCompile(`^[0-9a-f]{32}(__r?lock__|-)`)
)

// clientOf guesses which library made a node, from its name and its data. It returns "" if it cannot.
func clientOf(name string, data []byte, byHand bool) string {
	switch {
	case byHand:
		return ClientHand
	case kazoos.MatchString(name), isKazooLease(name):
		return ClientKazoo
	case undashed.MatchString(name):
		return ClientZKLock
	case isCandidate(name):
		return ClientOurs
	case !dashed.MatchString(name):
		return ""
	}
	if _, ours := parseData(data); ours {
		return ClientOurs
	}
	if isAddress.Match(data) {
		return ClientCurator
	}
	return ClientEither
}

// isCandidate reports whether package election has made a node.
func isCandidate(name string) bool {
	n, ok := parse(name)
	return ok && strings.HasPrefix(n.Prefix, candidate)
}

// isAddress matches what Curator writes by default, the address of its machine.
var isAddress = regexp.MustCompile(`^([0-9]{1,3}\.){3}[0-9]{1,3}$|^[0-9a-fA-F:.%a-z0-9]*:[0-9a-fA-F:.%a-z0-9]*$`)

// UniqueName reports whether no other node will ever have this name, because it has a uuid.
func UniqueName(name string) bool {
	return dashed.MatchString(name) || undashed.MatchString(name) || kazoos.MatchString(name)
}

// describe adds what the node's data and stat say.
func (c *Contender) describe(data []byte, stat *zk.Stat) {
	c.Known = true
	c.Data, c.Written, c.Owner = data, stat.Mzxid, stat.EphemeralOwner
	c.Since, c.Token = time.UnixMilli(stat.Ctime).UTC(), stat.Czxid
	c.ByHand = stat.EphemeralOwner == 0
	if !c.ByHand {
		c.Session = SessionText(stat.EphemeralOwner)
	}
	c.Revoked = string(data) == queue.RevokeMessage
	c.Client = clientOf(c.Node, data, c.ByHand)
	switch d, ours := parseData(data); {
	case ours:
		c.ID, c.Label, c.Traceparent, c.Deaf = d.ID, d.Label, d.Traceparent, d.deaf()
	case !c.Revoked && len(data) <= longestID:
		c.ID = string(data)
	}
}

// longestID bounds data that counts as an ID. Longer data is the user's own.
const longestID = 256

// SessionText returns the id of a session as ZooKeeper's own tools print it.
func SessionText(id int64) string { return "0x" + hex(uint64(id)) }
