package mutants

// locks are the mutants of the contender, of what goroutines share, and of the kinds of lock.
var locks = []mutant{
	{
		"a changed node ahead counts as gone",
		"a contender comes in beside the one ahead",
		one("queue", "Look", always(test("event", "session.WatchDeleted"))), by("queue", "TestExplore/mutex, breaks and changes"),
	},
	{
		"the end of a writer ahead lets the next one in",
		"it comes in beside the reader that the writer has become",
		one("queue", "Look", always(test("Moves"))), by("queue", "TestExplore/w w r"),
	},
	{
		"the end of one's own node is not looked at",
		"the end of the one ahead grants a lock to one that has no place any more",
		one("queue", "Look", both(never(test("own", "session.WatchDeleted")), never(test("own", "session.WatchPending")))),
		by("queue", "TestExplore/mutex, deleted by hand"),
	},
	{
		"the clock is not asked before a grant",
		"a lock is granted to a session that may be over",
		one("queue", "(*contender).grant", never(test("c.s.Err()"))), by("queue", "TestGrantAsksTheClock"),
	},
	{
		"two of those ahead are watched, however many may hold",
		"as in Curator's driver, the release of another one wakes nobody",
		one("queue", "(*Verdict).add", always(test("weightOf()"))), by("queue", "TestDecideCounts"),
	},
	{
		"a request for three leases counts as one",
		"more leases are held than there are",
		one("queue", "LeasePolicy", put(result("ahead.Weight"), "1")), by("queue", "TestExplore/2 1 1 of 2"),
	},
	{
		"a reader does not wait for the writer before it",
		"a reader and a writer hold together",
		one("queue", "readWrite", never(test("writes()", "ahead"))), by("queue", "TestExplore/r w r"),
	},
	{
		"a call that gives up leaves its node",
		"it blocks everybody for as long as its session lasts",
		one("queue", "(*contender).contend", without(doing("c.leave()"))), by("queue", "TestWhoGivesUpLeavesNothing"),
	},
	{
		"a try writes before it looks",
		"processes that try keep each other out of a free lock",
		one("queue", "(*contender).contend", never(test("Tries"))), by("queue", "TestBusyTryWritesNothing"),
	},
	{
		"an older limit than the listing decides",
		"the holder of what was to go has gone by then, and one more comes in",
		one("queue", "(*contender).configured", always(test("c.config.Changed"))),
		by("semaphore", "TestStaleLimitInAListing"),
	},
	{
		"a change of the limit is not looked at before a grant",
		"who waits comes in by the limit of before",
		one("queue", "(*contender).look", never(test("c.limit.Event()"))), by("semaphore", "TestStaleLimitInAWait"),
	},
	{
		"a waiter does not look again after a session timeout",
		"a wake-up that is lost all the same leaves it waiting for ever",
		one("queue", "(*contender).wait", deaf("tick.C")), by("queue", "TestLostWakeUpCostsATimeout"),
	},
	{
		"the reader that a writer becomes is let in by an event",
		"no event shows both nodes: others may be in already",
		one("queue", "(*contender).contend", always(test("c.beside"))), by("queue", "TestBesideIsGrantedByAListing"),
	},
	{
		"counting does not start again near the end of the numbers",
		"past the end all contenders have one number, and each holds",
		one("queue", "(*place).remove", never(test("p.restart"))), by("queue", "TestCountingStartsAgain"),
	},

	{
		"a kept turn is used although somebody came",
		"the newcomer waits for a turn that goes on and on",
		one("share", "(*turn).isUsable", always(test("t.isAlone()"))), by("share", "TestKeepLooksFirst/somebody has come"),
	},
	{
		"a kept turn is used although it is over",
		"a lock is held whose node is gone, or whose session has ended",
		one("share", "(*turn).isUsable", always(test("t.Err()"))), by("share", "TestKeepLooksFirst/the node is gone"),
	},
	{
		"a kept turn counts for longer than a session timeout",
		"a server that takes the right to read away drops the event, and a newcomer waits for ever",
		one("share", "(*turn).isAlone", always(test("t.limit"))), by("share", "TestKeepLooksFirst/the watch no longer counts"),
	},
	{
		"a turn that nobody uses stays when somebody comes",
		"the newcomer waits until its time is over",
		one("share", "(*Turns).follow", deaf("disturbed")), by("share", "TestKeepNewcomer/kept"),
	},
	{
		"a turn is handed over for ever",
		"other processes never have their turn",
		one("share", "(*Turns).release", always(test("t.left"))), by("share", "TestBound"),
	},
	{
		"a turn that was asked back is handed over",
		"who has asked waits for goroutines that have come later",
		one("share", "(*Turns).release", never(test("t.IsLast()"))), by("share", "TestRevokedIsLast"),
	},
	{
		"readers join one that a writer waits for",
		"the writer never has its turn",
		one("share", "(*Turns).lookLocked", never(test("t.isUsable()"))), by("share", "TestReadersGoOnAfterTheirLook"),
	},
	{
		"a turn that is granted to nobody stays",
		"it blocks everybody for as long as its session lasts",
		one("share", "(*Turns).contend", without(doing("s.sendLeaveLocked()"))), by("share", "TestGrantedToNobody"),
	},
	{
		"a Lock behind a lost one enters the queue",
		"a goroutine that hangs keeps out all other processes",
		one("share", "(*Holds).lostInSlot", never(test("Lease.Err()"))), by("share", "TestLostHoldKeepsSlot"),
	},
	{
		"a key is forgotten while it is in use",
		"two objects of one key exclude each other by nodes of their own, and an owner waits for itself",
		one("share", "(*Key).forget", never(test("e.calls"))), by("share", "TestCallsShareAnObject"),
	},

	{
		"the turn of a writer that becomes a reader is handed over",
		"the next writer of the process holds beside the reader",
		one("queue", "(*Turn).Beside", without(doing("t.last.end()"))), by("rwlock", "TestDowngradeHandsNothingOver"),
	},
	{
		"a limit is set although the node of the Resize is gone",
		"what it held is held by others by then",
		one("semaphore", "(*Semaphore).replace", put(value("Path", "node"), "dir")), by("semaphore", "TestLateLowering"),
	},
	{
		"Curator's layout is overlooked",
		"both layouts hold at one path",
		one("queue", "(*contender).meetRivals", always(test("slices.ContainsFunc()"))),
		by("semaphore", "TestOwnLayoutMeetsTheGate"),
	},
	{
		"several locks are taken as they were given",
		"two callers wait for each other in a circle",
		one("zklock", "Multi", put(result("strings.Compare()"), "0")), by("zklock", "TestMultiOverlap"),
	},
	{
		"a lock that is lost during the wait for the next is no loss",
		"not all of the locks are held",
		one("zklock", "(*MultiLock).take", never(test("l.Err()"))), by("zklock", "TestMultiLosesOneWhileItWaits"),
	},
}
