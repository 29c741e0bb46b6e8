package kinds

// Config is the data of a queue's directory. A kind with a [Configuration] decides by it.
type Config struct {
	Data    []byte
	Changed int64 // the transaction (zxid) that set the data
	Version int32 // how often the data was set since the directory was made
}

// Configuration makes a kind of lock depend on the data of the directory: the [Config]. A lock of such a kind
// can be changed while it is in use, by Reconfigure of a queue.Queue. Package semaphore is made this way.
//
// Its functions must be pure, as those of a [Policy]: they may be called at any time and by several
// goroutines at once.
//
// A change that makes the lock stricter, such as a lower limit, needs more than new data, since holders may
// have gone by the former data. Policy then returns a [Tightening], and the data has to say what that needs:
// which limits were in force before, and which transactions replaced them. A limit that only grows needs none.
//
// A lock of such a kind keeps no places (queue.WithLazyRelease), and takes no lease beside another (Beside of a
// queue.Lease).
type Configuration struct {
	// Config is what all users of a lock of this kind at one path must agree on, such as the limit of
	// a semaphore. It is the data of the directory. A contender that finds no data sets it.
	Config []byte
	// Policy returns the policy of a contender under a configuration of the directory. It must depend on
	// its arguments alone. Its error ends the acquisition, which returns it. When the data changes, waiting
	// contenders call it again.
	Policy func(me Node, config Config) (Policy, Tightening, error)
	// Rivals selects, from the names in the directory, the directories in which contenders of another
	// kind of lock contend for the same thing. A contender in one of them is a conflict. If Rivals is
	// nil, there are none.
	Rivals func(names []string) []string
}

// Tightening says what a contender has to know of the time before its lock was made stricter, as by a
// lower limit. It is zero if the lock never was.
type Tightening struct {
	// Tightened, if not 0, is the transaction (zxid) that made the lock stricter than it was
	// before: it replaced a configuration by which more contenders could go. A contender with
	// an older node may have gone by that configuration.
	Tightened int64
	// Former is the most slack that the contender had before Tightened.
	Former int
	// Lowered, if not 0, is the last transaction that made the lock stricter. The lock may have
	// become less strict again since, but a contender whose server lags behind may not know. So
	// the policy's Replaces counts for nodes that are older than Lowered, and not for younger ones.
	// It must report true for all of the kind: a contender that has to go by the new configuration
	// leaves another node in its place.
	Lowered int64
}
