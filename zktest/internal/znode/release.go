package znode

// A Release is what differs between the releases of ZooKeeper that the servers can imitate. The zero value of
// each difference is the older behaviour.
type Release struct {
	Number string // as the servers report it

	// ExistsNeedsRead: exists needs the READ permission for a node that exists (ZOOKEEPER-2590).
	ExistsNeedsRead bool
	// EventsHaveZxid: a watch event has the number of the transaction that caused it, if it is sent
	// because of one. Otherwise all events have -1.
	EventsHaveZxid bool
	// ParsesFirst: a write that cannot be parsed gets no transaction number, unless it is a multi.
	ParsesFirst bool
	// MultiCreate2: a create2 or a createContainer within a multi is what its name says, whatever its
	// flags, and its answer has a stat (ZOOKEEPER-4026).
	MultiCreate2 bool
	// MultiChecksFlags: a multi with a create whose flags do not exist cannot be parsed.
	MultiChecksFlags bool
	// WatchModes: a client can have watches of several modes on one path (ZOOKEEPER-4466), and remove those of
	// one mode (ZOOKEEPER-4472). Otherwise each watch replaces the one before.
	WatchModes bool
	// RewatchNeedsRead: a client that sets a watch again and may not read the node hears of no change since.
	RewatchNeedsRead bool
}

// Releases are the releases by the names of their lines.
var Releases = map[string]Release{
	"3.8": {Number: "3.8.0"},
	"3.9": {
		Number:           "3.9.6",
		ExistsNeedsRead:  true,
		EventsHaveZxid:   true,
		ParsesFirst:      true,
		MultiCreate2:     true,
		MultiChecksFlags: true,
		WatchModes:       true,
		RewatchNeedsRead: true,
	},
}
