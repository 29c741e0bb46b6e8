package placemodel

import (
	"github.com/turnstile-go/turnstile/internal/decide"
)

// A world is all that matters of the servers, the clients and their callers at one moment. It is a value
// without pointers, so that two of them can be compared. Its tables have slots of fixed numbers, and none is
// the number of no slot.

const (
	none = -1

	maxNodes    = 10
	maxLog      = 10
	maxClients  = 3
	maxCalls    = 4
	maxAttempts = 2 * maxCalls // two for each call
	maxWatches  = 10
	maxCreates  = 4
	maxSweeps   = 4
	maxTargets  = 3
	maxParts    = 2
)

// node is a node that the leader has made.
type node struct {
	used           bool
	client, id     int8 // whose it is, and the uuid in its name
	dir, sort, seq int8
	era            int8 // how many configurations there had been
	old            bool // of a session that its client has lost
	inBase         bool // stands before the log begins
	gone           bool // the leader has deleted it
	orphaned       bool // the reply to its create was lost
	leaving        int8
	operated       bool // an operator has deleted it
}

// Whether a client has its node deleted for certain.
const (
	stays      int8 = iota
	leavesNext      // once the next contender of its Local has its place
	leaves
)

// entry is a change of the leader's state, in the order in which all servers make it.
type entry struct {
	what int8
	node int8
	more bool // the next entry is of the same transaction
}

const (
	made int8 = iota
	gone
	changed    // the data of a node
	configured // the data of the directory
)

// client is a process with one session, and the server that it is connected to.
type client struct {
	view   int8 // how much of the log its server has carried out, and has told it of
	old    bool // the servers have still to end a session that the client has lost
	left   int8 // hand-overs that its Local has left
	turn   int8 // the attempt that is the turn of its Local
	peer   int8 // the attempt that contends for its Local
	came   int8 // callers of the Local so far: they get the lock in the order in which they came
	fit    bool
	barred bool
}

// call is a caller that wants locks.
type call struct {
	phase  int8
	rounds int8 // still to come, with the present one
	part   int8 // the locks of its program that it has
	at     int8 // which caller of the Local it is
}

const (
	ready int8 = iota
	contends
	queues   // in its Local
	holds    // all that it wants
	confirms // waits until the servers have confirmed that nodes are gone
	downgrades
	done
)

// attempt is an attempt of package place, or what a turn needs of it.
type attempt struct {
	used                bool
	call, client, id    int8
	dir, sort           int8
	state               decide.State
	stage               int8
	need                int8 // how much of the log a sync has promised
	node                int8
	own                 int8             // the watch on it
	on                  [maxTargets]int8 // watches on the targets
	rest                int8
	names               uint16 // the listing that is to be judged, if it is not judged at once
	children            int8   // the watch on the children: a watch's state, or none
	before              int8   // the node that is about to leave, of the turn before
	beside              int8   // the node whose place it shares
	renews              int8   // the attempt whose place it takes
	config              int8   // the watch on the directory: a watch's state, or none
	configEra           int8   // what the answer to that said
	era, after          int8   // of its configuration, and the latest when its create was sent
	doubt, wake, waited bool
	blocked             bool // may go, but for an answer about its own node
	lazy, joint, failed bool
	renewed, outdated   bool
}

// What an attempt waits for.
const (
	acts      int8 = iota
	creating       // a server has its create
	answering      // the leader has carried it out
	listing
	syncing
	synced  // the server catches up, and then lists
	reading // the directory was listed, and its configuration is being read
	listed  // waits for the other members of its party
	watches
)

// watch is a watch on the data of a node, which the attempts of a session share.
type watch struct {
	used         bool
	client, node int8
	state        int8
	told         bool // the answer is there, and was no refusal
	word         int8 // what the contender that owns the node says
}

// States of a watch.
const (
	asked int8 = iota
	pending
	deleted
	unclear
	dead // pending for the client, and the server does not know it: only in a broken variant
)

const (
	says int8 = iota
	saysWaits
	saysFirst
)

// create is a create whose client does not wait for it any more.
type create struct {
	used                  bool
	client, id, dir, sort int8
	beside, renews        int8 // as in attempt, but the node
	lost                  bool // so nobody knows whether it is ever carried out
	old                   bool
}

// sweep has the nodes of one id deleted.
type sweep struct {
	used       bool
	client, id int8
}

type world struct {
	nodes    [maxNodes]node
	log      [maxLog]entry
	length   int8 // of the log
	baseEra  int8
	era      int8
	clients  [maxClients]client
	calls    [maxCalls]call
	attempts [maxAttempts]attempt
	watches  [maxWatches]watch
	creates  [maxCreates]create
	sweeps   [maxSweeps]sweep
	faults   [kindsOfFaults]int8 // still to come
}

// Faults, each of which a world has a number of.
const (
	faultCut    int8 = iota // a connection is lost
	faultLose               // a session is lost
	faultCancel             // the context of a caller ends
	faultDelete             // an operator deletes a node
	faultChange             // an operator sets the data of a node
	faultResize             // an operator sets the limit
	kindsOfFaults
)
