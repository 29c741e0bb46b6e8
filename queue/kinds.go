package queue

import "github.com/turnstile-go/turnstile/kinds"

// What a kind of lock consists of, and what a listing shows: see package kinds.
type (
	Kind          = kinds.Kind
	Policy        = kinds.Policy
	Configuration = kinds.Configuration
	Config        = kinds.Config
	Tightening    = kinds.Tightening
	Node          = kinds.Node
	Contender     = kinds.Contender
)

// Errors that have fields: see [kinds.OpError] and [kinds.WaitError].
type (
	OpError   = kinds.OpError
	WaitError = kinds.WaitError
)

// ErrMaxWait ends a wait that has lasted for as long as its caller allows: see [WithMaxWait].
var ErrMaxWait = kinds.ErrMaxWait

// Prefixes that mark a child as a contender, whatever the kind of lock. A kind can have others.
const (
	PrefixLock  = kinds.PrefixLock  // a mutex: zklock, Curator, zk.Lock of go-zookeeper
	PrefixLatch = kinds.PrefixLatch // an election: Curator's LeaderLatch
	PrefixRead  = kinds.PrefixRead  // a reader: rwlock, Curator
	PrefixWrite = kinds.PrefixWrite // a writer: rwlock, Curator
	PrefixLease = kinds.PrefixLease // leases of a semaphore: semaphore, Curator

	PrefixKazooLock = kinds.PrefixKazooLock // a mutex or a writer: kazoo
	PrefixKazooRead = kinds.PrefixKazooRead // a reader: kazoo
)

// RevokeMessage is the node data that asks a holder to give up its lease. Curator uses the same.
const RevokeMessage = kinds.RevokeMessage

// ParseNode parses the name of a child. It returns false if the child is not a contender: its
// name has none of the prefixes that are constants here, and none of the further ones.
func ParseNode(name string, further ...string) (Node, bool) { return kinds.ParseNode(name, further...) }
