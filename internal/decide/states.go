package decide

// State is how far a place has come.
type State uint8

const (
	Outside  State = iota // nothing was sent
	Entering              // a create is under way
	Doubtful              // the reply to a create was lost: there may be a node, or several
	Deciding              // a listing is at hand that shows the node
	Waiting               // others are ahead, and watches are set that tell of changes
	Stale                 // the node stands, and only a new listing tells who is ahead
	Moving                // the node stands until another has its place, which is by a newer configuration
	Holding               // leases hold the node
	Keeping               // nobody holds the node, and this process may use it again
	Left                  // nobody uses the place any more: its nodes are deleted for certain, or their session has ended
)

// Input is what a place hears.
type Input uint8

const (
	Run        Input = iota // go on
	Made                    // the create has made the node, and a listing shows it
	Parentless              // the create has failed since a directory was missing, which is there now
	ReplyLost               // the reply to the create was lost
	Found                   // a listing shows a node of a create whose reply was lost
	NotFound                // the directory has no node of such a create
	Ahead                   // others are in the way
	Free                    // nothing is in the way
	Outdated                // nothing is in the way, by a configuration that no longer holds
	Quiet                   // nothing has changed
	Stirred                 // something has changed that a listing explains
	Listed                  // a listing shows the node
	Replaced                // another node has the place
	Passed                  // a lease has ended, and others hold the node
	Kept                    // the last lease has ended, and the place may be of use
	Used                    // a lease begins
	Lost                    // the node or the session is lost
	Quit                    // nobody wants the place any more: a call has ended, a server refuses, or the last lease has ended
)

// Effect is what is to be done. It ends with an input.
type Effect uint8

const (
	Nothing Effect = iota
	Create         // make the node and list
	Seek           // look for nodes of the create whose reply was lost
	Judge          // decide by the listing
	Watch          // watch who is ahead, and look at the watches
	Look           // look at the watches
	List           // list
	Remove         // delete the node for certain, and all that a lost reply may have made
)

// Outcome is what has become of a place, for the caller that wants the lock.
type Outcome uint8

const (
	GoesOn  Outcome = iota // there is something to do
	Waits                  // there is nothing to do until something changes
	Renews                 // another has to take the place before it can be granted
	Granted                // it is the caller's
	Again                  // it is lost, and another can enter
	Failed                 // it was given up
)

// Move is what follows an input.
type Move struct {
	To  State
	Do  Effect
	Out Outcome
}

// moves has all that can happen to a place, but for its end.
var moves = [...]map[Input]Move{
	Outside: {
		Run: {Entering, Create, GoesOn},
	},
	Entering: {
		Made:       {Deciding, Judge, GoesOn},
		Parentless: {Entering, Create, GoesOn},
		ReplyLost:  {Doubtful, Seek, GoesOn},
	},
	Doubtful: {
		Found:    {Deciding, Judge, GoesOn},
		NotFound: {Entering, Create, GoesOn},
	},
	Deciding: {
		Run:      {Deciding, Judge, GoesOn},
		Ahead:    {Waiting, Watch, GoesOn},
		Free:     {Holding, Nothing, Granted},
		Outdated: {Moving, Nothing, Renews},
	},
	Waiting: {
		Run:      {Waiting, Look, GoesOn},
		Quiet:    {Waiting, Nothing, Waits},
		Stirred:  {Stale, List, GoesOn},
		Free:     {Holding, Nothing, Granted},
		Outdated: {Moving, Nothing, Renews},
	},
	Stale: {
		Listed: {Deciding, Judge, GoesOn},
	},
	Moving: {
		Replaced: {Left, Nothing, GoesOn},
	},
	Holding: {
		Used:   {Holding, Nothing, Granted},
		Passed: {Holding, Nothing, Granted},
		Kept:   {Keeping, Nothing, GoesOn},
	},
	Keeping: {
		Used: {Holding, Nothing, Granted},
	},
}

// The words of the table in the package documentation.
var (
	states = [...]string{
		Outside: "outside", Entering: "entering", Doubtful: "doubtful", Deciding: "deciding", Waiting: "waiting", Stale: "stale",
		Moving: "moving", Holding: "holding", Keeping: "keeping", Left: "left",
	}
	inputs = [...]string{
		Run: "run", Made: "made", Parentless: "parentless", ReplyLost: "reply lost", Found: "found", NotFound: "not found",
		Ahead: "ahead", Free: "free", Outdated: "outdated", Quiet: "quiet", Stirred: "stirred", Listed: "listed",
		Replaced: "replaced", Passed: "passed", Kept: "kept", Used: "used", Lost: "lost", Quit: "quit",
	}
	effects = [...]string{
		Nothing: "", Create: "create", Seek: "seek", Judge: "judge", Watch: "watch", Look: "look", List: "list", Remove: "remove",
	}
	outcomes = [...]string{
		GoesOn: "", Waits: "waits", Renews: "renews", Granted: "granted", Again: "again", Failed: "failed",
	}
)

func (s State) String() string   { return states[s] }
func (i Input) String() string   { return inputs[i] }
func (e Effect) String() string  { return effects[e] }
func (o Outcome) String() string { return outcomes[o] }

// Step returns what follows an input in a state. It returns false if nothing can: that is so for every input once a
// place was left. Lost and Quit can come at any time before that.
func Step(s State, in Input) (Move, bool) {
	switch {
	case s == Left:
		return Move{}, false
	case in == Lost:
		return Move{Left, Remove, Again}, true
	case in == Quit:
		return Move{Left, Remove, Failed}, true
	}
	m, ok := moves[s][in]
	return m, ok
}
