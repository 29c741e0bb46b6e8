package locks

import (
	"encoding/json"
	"fmt"
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
	Deaf        bool      `json:"-"` // its data says that it does not hear a revocation
	Token       int64     `json:"token,omitempty"`
	Client      string    `json:"client,omitempty"` // see clientOf

	Data  []byte `json:"-"`
	Owner int64  `json:"-"`
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
	ClientLatch   = "curator, LeaderLatch"
	ClientEither  = "turnstile or curator"
	ClientKazoo   = "kazoo"
	ClientZKLock  = "zk.Lock"
	ClientHand    = "by hand"
)

var (
	dashed   = regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-`)
	undashed = regexp.MustCompile(`^_c_[0-9a-f]{32}-`)
	kazoos   = regexp.MustCompile(`^[0-9a-f]{32}__r?lock__`)
	// address matches what Curator writes by default, the address of its machine.
	address = regexp.MustCompile(`^([0-9]{1,3}\.){3}[0-9]{1,3}$|^[0-9a-fA-F:.%a-z0-9]*:[0-9a-fA-F:.%a-z0-9]*$`)
)

// clientOf guesses which library made a node, from its name and its data. It returns "" if it cannot.
func clientOf(name string, data []byte, ours bool) string {
	n, _ := parse(name)
	switch {
	case kazoos.MatchString(name):
		return ClientKazoo
	case undashed.MatchString(name):
		return ClientZKLock
	case strings.HasPrefix(n.Prefix, candidate):
		return ClientOurs
	case n.Prefix == queue.PrefixLatch:
		return ClientLatch
	case !dashed.MatchString(name):
		return ""
	case ours:
		return ClientOurs
	case address.Match(data):
		return ClientCurator
	}
	return ClientEither
}

// nodeData is what the locks of this library write into the nodes of contenders, as far as the command shows it.
type nodeData struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Traceparent string `json:"traceparent"`
	Revocable   *bool  `json:"revocable"` // false in nodes of versions before 0.1.0 whose holder hears no revocation
}

// Longer data is a user's own.
const longestData, longestID = 4096, 256

// describe adds what the node's data and stat say.
func (c *Contender) describe(data []byte, stat *zk.Stat) {
	c.Known, c.Data, c.Owner = true, data, stat.EphemeralOwner
	c.Since, c.Token = time.UnixMilli(stat.Ctime).UTC(), stat.Czxid
	c.ByHand = stat.EphemeralOwner == 0
	c.Revoked = string(data) == queue.RevokeMessage
	var d nodeData
	ours := len(data) <= longestData && json.Unmarshal(data, &d) == nil && d.ID != ""
	switch {
	case ours:
		c.ID, c.Label, c.Traceparent, c.Deaf = d.ID, d.Label, d.Traceparent, d.Revocable != nil && !*d.Revocable
	case !c.Revoked && len(data) <= longestID:
		c.ID = string(data)
	}
	if c.ByHand {
		c.Client = ClientHand
		return
	}
	c.Session, c.Client = fmt.Sprintf("%#x", uint64(stat.EphemeralOwner)), clientOf(c.Node, data, ours)
}
