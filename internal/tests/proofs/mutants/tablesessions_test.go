package mutants

// sessions are the mutants of what a lock relies on: the lease clock, the session, its connection; and of what stands beside
// the locks.
var sessions = []mutant{
	{
		"a write counts from its sending",
		"a forwarded write touches no session: the servers end it half a tick earlier",
		one("clock", "(*trail).sends", put(value("s.proof"), "at")),
		by("clock", "TestAnswerProvesWhatItsRequestDid").andSeeds("lease"),
	},
	{
		"an answer proves the time at which it came",
		"the server heard of the session when it took the request, and answers can come late by seconds",
		one("clock", "(*trail).answered", put(argument("t.frames.add", "sent"), "now")), by("clock", "TestProof").andSeeds("lease"),
	},
	{
		"half a tick is not taken off",
		"the server's last list can be older than the frame that is counted",
		one("clock", "(*trail).reach", put(argument("t.frames.sent"), "at")), by("clock", "TestProof"),
	},
	{
		"a request counts without the gap",
		"the pings that a leader owes after a standstill come later",
		one("clock", "(*trail).proof", put(argument("t.through.sent"), "write")), by("clock", "TestProof"),
	},
	{
		"a request counts from its answer",
		"the leader's last ping before it can be older",
		one("clock", "(*trail).answered", put(argument("t.through.add", "sent"), "now")), by("clock", "TestProof"),
	},
	{
		"a read counts as a request through the leader",
		"a server that has been cut off answers it alone",
		one("clock", "(*trail).takes", put(argument("t.answered", "evidenceNone"), "true")),
		by("clock", "TestAnswerProvesWhatItsRequestDid"),
	},
	{
		"a refusal counts that a server gives alone",
		"no leader has seen the request",
		one("clock", "(*trail).takes", put(argument("shows", "code"), "codec.CodeOK")),
		by("clock", "TestAnswerProvesWhatItsRequestDid"),
	},
	{
		"a handshake counts from its answer",
		"the leader touched the session before that",
		one("clock", "(*trail).begin", put(value("t.hello"), "greeted")), by("clock", "TestProof"),
	},
	{
		"the leader's clock is taken to be right",
		"the half tick of a slow one is longer, and the list lacks the frame that is counted",
		one("clock", "slowHalf", put(result("half"), "half")), by("clock", "TestProofOfSlowLeader"),
	},
	{
		"a sync proves what a write does",
		"a leader that has been cut off answers a sync alone",
		one("clock", "shows", put(result("evidenceLeader"), "evidenceQuorum")), by("clock", "TestShows"),
	},
	{
		"a handshake or a sync is enough for a session that owns nodes",
		"others wait for such a session to end, and nothing proves that it has not",
		one("clock", "(*Clock).Remaining", always(test("owns"))), by("clock", "TestClock"),
	},
	{
		"a late answer revives a session",
		"what is lost comes back, and others hold its locks by then",
		one("session", "(*Session).take", always(test("s.Err()"))), by("session", "TestLateAnswers"),
	},
	{
		"Err waits for a timer",
		"after a pause of the process the first answer is wrong",
		one("session", "(*Session).Err", never(test("s.remaining()"))), by("session", "TestErrComputedWhenAsked"),
	},
	{
		"the id of a greeting is not compared",
		"another session answers, and the locks of the old one count on",
		one("session", "(*Session).greeted", put(value("other"), "false")), by("session", "TestAnotherSessionAnswers"),
	},
	{
		"the timeout of the first greeting counts for ever",
		"the servers go by a shorter one that a later connection was granted",
		one("session", "(*Session).grant", always(test("g.TimeoutMillis", "s.greeting.TimeoutMillis"))),
		by("session", "TestShorterTimeoutAtReconnect").andSeeds("lease"),
	},
	{
		"any timeout that a server grants is believed",
		"with a timeout of weeks the clock never runs out",
		one("session", "(*Session).greeted", never(test("longestGrant"))), by("hostile", "TestAttacks"),
	},
	{
		"watches are trusted across a reconnect",
		"an event that came meanwhile is never told",
		one("session", "(*Session).disconnected", without(doing("s.watches.breakAll()"))),
		by("session", "TestWatchEvents"),
	},
	{
		"no write before the search",
		"a leader that has been cut off says that there is no node, and makes it later",
		[]change{
			{"session", "(*entry).listBehindWrite", put(argument("s.list", "s.cfg.checking"), "s.cfg.reading(exists, e.asked, false)")},
			// A new connection begins with a write of its own, behind which the search would be.
			{"clock", "(*beat).begin", put(result("owns"), "false")},
		},
		by("session", "TestEnterAtCutOffLeader"),
	},
	{
		"the node of another session is adopted",
		"it goes with that session, and its lock is believed to be held",
		one("session", "(*entry).owns", always(test("stat.EphemeralOwner"))), by("session", "TestEnterLosesName"),
	},
	{
		"an Enter that fails leaves its node",
		"it blocks everybody for as long as its session lasts",
		one("session", "(*Session).Enter", without(doing("e.undo()"))), by("session", "TestEnterIsCancelled"),
	},
	{
		"who was in doubt does not look again when it leaves",
		"a second node of a create that was sent twice stays",
		one("session", "(*Node).Remove", never(test("e.doubt"))), by("session", "TestEnterRemovesTwins"),
	},
	{
		"a delete without a connection is forgotten",
		"a lock that was given up stays held",
		one("session", "(*removals).owe", without(doing("append()", "q.owed"))), by("session", "TestOwedDeletesGoFirst"),
	},
	{
		"a delete that is owed goes behind what others send",
		"a process that locks again waits for its own node",
		one("session", "(*Session).connected", swapped(doing("s.removals.resume()"), doing("wait", "s.accepted()"))),
		by("zklock", "TestLockAgainAfterCut"),
	},
	{
		"a lost session is not closed on the servers",
		"its nodes keep others waiting",
		one("session", "(*Manager).run", without(doing("m.closer.add()"))),
		by("session", "TestLongOutageClosesLostSession"),
	},
	{
		"heartbeats wait for the answer to the last one",
		"where answers are slow a session knows less of itself, and is lost",
		one("clock", "(*beat).roundDue", put(test("f.proven"), "len(b.syncs)+len(b.agree) == 0")), by("wire", "TestBeatsAreNotHeldBack"),
	},
	{
		"a heartbeat goes behind the calls that wait",
		"a session's own load costs the session",
		one("wire", "(*Conn).nextLocked", put(argument("Or", "own"), "cmp.Or(w.waiting.deletes.Front(), w.waiting.own.Front())")),
		by("wire", "TestBeatsGoAhead"),
	},
	{
		"a term outlives the leadership",
		"two lead at a time",
		one("election", "(*Election).serve", put(argument("context.WithValue", "ctx"), "context.WithoutCancel(ctx)")),
		by("election", "TestPausedLeader"),
	},
	{
		"a record is written without the guard of the lease",
		"a replica that has lost the lock says that the tick is done",
		one("schedule", "(*Job).write", put(value("results"), "s.Multi(ctx, set)")),
		by("schedule", "TestRecordIsGuarded"),
	},
	{
		"a candidate that cannot lead stands again at once",
		"the candidates that can lead wait for it again and again",
		one("election", "(*rest).after", never(test("worked"))), by("election", "TestRest"),
	},
	{
		"missed ticks that were left out are not counted",
		"they are overtaken in silence",
		one("schedule", "(*catchUp).look", never(test("left"))), by("schedule", "TestCatchUpOvertaken"),
	},
	{
		"a claim with a lower token is accepted",
		"a former holder writes over what the present one has written",
		one("fence", "claim.run", never(test("highest", "token", ">"))), by("databases", "TestOwnSecondClaim"),
	},
}
