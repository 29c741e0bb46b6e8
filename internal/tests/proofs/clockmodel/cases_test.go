package clockmodel

// The cases of the derivation: what a write proves, by where the client is connected and by what F is.
// Each of them ends as the lease does (ending). A moment is named after its event: F.sent is when the
// client has sent frame F.

// write is W, the write that we sent at S, and that a quorum agreed to.
var write = problem{
	reals: []string{"W.sent", "W.forwarded", "W.taken", "W.answered"},
	bools: []string{"sameLeader"},
	formulas: []formula{
		{"order-of-W", cause, "", inOrder("0.0", "W.sent", "W.forwarded", "W.taken", "W.answered")},
		{"one-leader", assumed, "So one connection knows one leader", "sameLeader"},
	},
	events: []event{
		{"W.sent", "", "the client sends the write W"},
		{"W.taken", "(and sameLeader (not (and newLeader (< elected W.taken))))", "the leader takes W, and a quorum agrees"},
		{"W.taken", "(and sameLeader newLeader (< elected W.taken))", "the former leader, which is cut off, answers W alone"},
		{"W.taken", "(not sameLeader)", "another leader, which the server follows now, takes W"},
		{"W.answered", "", "the client has the answer to W, and counts from F on"},
	},
}

// ending is the end of the lease, in all cases: by the leader's count, and by the client's.
var ending = problem{
	reals: []string{
		"touched", "expired", "elected", "now", "unseen", // unseen is a suspension that the client's clock does not show
		"timeout", "granted", "timeoutTakes", "margin",
	},
	bools: []string{"newLeader"},
	formulas: []formula{
		{"lengths", cause, "", "(and (> timeout 0.0) (> granted 0.0) (> timeoutTakes 0.0) (< 0.0 margin timeout) (>= unseen 0.0))"},
		{"now-is-last", cause, "", "(and (<= W.answered now) (<= touched now) (=> newLeader (<= 0.0 elected now)))"},

		{"counts", servers, "The leader counts the timeout of a session from the last time the session was touched",
			"(=> (not newLeader) (>= expired (+ touched timeoutTakes)))"},
		{"alive-at-W", servers, "It had not expired the session, or else it would have refused the write",
			"(=> (not newLeader) (> expired W.taken))"},
		{"quorum", servers, "that election came after the write", "(=> newLeader (>= elected W.taken))"},
		{"fresh-timeouts", servers, "A new leader gives every session its whole timeout from its election on",
			"(=> newLeader (>= expired (+ elected timeoutTakes)))"},

		{"timeout-as-granted", assumed, "The timeout is the smallest that any connection of the session was granted",
			"(>= granted timeout)"},
		{"leader-not-too-fast", assumed, "If the leader's clock is fast, its timeout ends earlier by that",
			"(>= (* 51.0 timeoutTakes) (* 50.0 granted))"},
		{"suspension-counts", assumed, "Time that this machine was suspended counts", "(= unseen 0.0)"},

		{"margin", rule, "The margin is a tenth of the timeout unless the user sets it", "(>= (* 10.0 margin) timeout)"},
	},
	goals: []formula{
		{"touched-at-F", rule, "the leader has touched the session at F or later", "(=> (not newLeader) (>= touched F.sent))"},
		{"expires-later", rule, "", "(>= expired (+ F.sent timeoutTakes))"},
		{"lease-ends-first", rule, "", endsFirst("F.sent", "now")},
	},
	events: []event{
		{"elected", "newLeader", "the other servers elect a new leader"},
		{"touched", "(not newLeader)", "the leader touches the session for the last time"},
		{"expired", "", "the leader expires the session, and another client gets its lock"},
		{"now", "(= unseen 0.0)", "the client still counts on its session"},
		{"now", "(> unseen 0.0)", "the client still counts on its session: its clock stood still while the machine was suspended"},
	},
}

// endsFirst says that the session has not expired at a moment, if the client counts on it now, from a moment on.
func endsFirst(from, moment string) string {
	return "(=> (< (- now unseen) (- (+ " + from + " timeout) margin)) (< " + moment + " expired))"
}

// follower is the case of the derivation: the client is connected to a follower.
var follower = write.and(lists).and(ending)

// lists is what passes between the follower, its leader and its client, up to W. F is any frame, and R is S″.
// List A answers the last ping that the leader queued before it answered R, and list B the next ping.
var lists = problem{
	name: "a client of a follower",
	reals: []string{
		"F.sent", "F.noted", "F.answered",
		"R.sent", "R.leader", "R.passed", "R.answered",
		"pingA.queued", "listA.made", "listA.left", "listA.taken",
		"pingB.queued", "listB.made", "listB.left", "listB.taken",
		"listE.made", "listE.left", "listE.taken",
		"half", "trueHalf", "halfTakes", "h", "g",
	},
	bools: []string{"onA", "onB", "onE", "overdue", "stoodStill"},
	formulas: []formula{
		{"halves", cause, "", "(and (> half 0.0) (> trueHalf 0.0) (> halfTakes 0.0) (> g 0.0))"},
		orderOfF,
		{"order-of-R", cause, "", inOrder("0.0", "R.sent", "R.passed", "R.answered")},
		{"order-of-A", cause, "", inOrder("pingA.queued", "listA.made", "listA.left", "listA.taken")},
		{"order-of-B", cause, "", inOrder("pingB.queued", "listB.made", "listB.left", "listB.taken")},
		{"order-of-E", cause, "", inOrder("listE.made", "listE.left", "listE.taken")},
		{"lists-in-order", cause, "", "(and " + inOrder("listE.left", "listA.made") + inOrder("listA.left", "listB.made") + ")"},
		{"A-then-R-then-B", cause, "", "(and (<= pingA.queued R.leader) (< R.leader pingB.queued))"},
		{"overdue", cause, "", "(= overdue (> R.leader (+ pingA.queued halfTakes)))"},
		{"on-a-list-if-noted", cause, "", "(and (=> onA (<= F.noted listA.made)) (=> onB (<= F.noted listB.made)) (=> onE (<= F.noted listE.made)))"},

		{"frame-before-h", rule, "A frame that we sent at F, and whose answer we had at S″ − h or before", "(<= F.answered (- R.sent h))"},
		{"request-before-g", rule, "whose answer we had at S − g or before", "(<= R.answered (- W.sent g))"},
		{"h-for-slow-clocks", rule, "Write h for half a tick of a leader whose clock is slow", "(>= (* 50.0 h) (* 51.0 half))"},

		{"noted", servers, "that it has heard of the session before it answers", "(<= F.noted F.answered)"},
		{"through-the-leader", servers, "The leader was running at some moment between the", inOrder("R.sent", "R.leader", "R.passed")},
		{"answered-in-order", servers, "A server answers that ping before it passes on the leader's answer, which is behind it",
			"(=> (<= pingA.queued R.leader) (<= listA.left R.passed))"},
		{"lists-before-W", servers, "it had taken every list that our", "(and" +
			" (=> (<= listA.left W.forwarded) (<= listA.taken W.taken))" +
			" (=> (<= listB.left W.forwarded) (<= listB.taken W.taken))" +
			" (=> (<= listE.left W.forwarded) (<= listE.taken W.taken)))"},
		{"lists-touch", servers, "when it receives the follower's list of the", "(and" + touches("A") + touches("B") + touches("E") + ")"},

		{"listed", assumed, "A frame that a server notes in the very instant in which it makes a list is on that list or", "(and" +
			" (=> (<= F.noted listA.made) (or onE onA))" +
			" (=> (<= F.noted listB.made) (or onE onA onB)))"},
		{"tick-known", assumed, "minSessionTimeout is not set below two ticks, unless the tick is told", "(<= trueHalf half)"},
		{"leader-not-too-slow", assumed, "If it is slow, its half tick takes longer", "(<= (* 50.0 halfTakes) (* 51.0 trueHalf))"},
		{"pinging-thread-runs", assumed, "The leader's pinging thread does not stand still alone for longer than g",
			"(=> (and overdue (not stoodStill)) (<= pingB.queued (+ R.leader g)))"},
		{"goes-on-within-g", assumed, "within g of a standstill of the whole leader, before the next standstill",
			"(=> (and overdue stoodStill) (<= pingB.queued (+ R.leader g)))"},
		{"overdue-ping-keeps-up", assumed, "no more than the rest of g and our own round trip", "(=> (and overdue (<= pingB.queued (+ R.leader g)))" +
			" (<= (- listB.left R.passed) (+ g (- R.answered R.passed) (- W.forwarded W.sent))))"},
	},
	events: []event{
		{"F.sent", "", "the client sends frame F"},
		{"F.noted", "", "its server, a follower, notes that it has heard of the session"},
		{"F.answered", "", "the client has the answer to F"},
		{"R.sent", "", "the client sends R, a request through the leader"},
		{"R.leader", "(and (not overdue) (<= R.sent R.leader R.passed))", "the leader answers R"},
		{"R.passed", "(not (<= R.sent R.leader R.passed))", "the server answers R, and has not asked the leader"},
		{"R.leader", "(and overdue stoodStill)", "the leader, which has just stood still, answers R; its next ping is overdue"},
		{"R.leader", "(and overdue (not stoodStill))", "the leader answers R; its pinging thread is late"},
		{"R.answered", "", "the client has the answer to R"},
		{"pingA.queued", "", "the leader pings the server"},
		{"listA.made", "onA", "the server makes list A for that ping: the session is on it"},
		{"listA.made", "(not onA)", "the server makes list A for that ping: the session is not on it"},
		{"listA.taken", "(and onA (< listA.taken expired))", "the leader takes list A"},
		{"listA.left", "(and onA (>= listA.taken expired))", "list A is lost: the server is cut off from the leader"},
		{"pingB.queued", "", "the leader pings the server again"},
		{"listB.made", "onB", "the server makes list B: the session is on it"},
		{"listB.taken", "(and onB (< listB.taken expired))", "the leader takes list B"},
		{"listB.left", "(and onB (>= listB.taken expired))", "list B is lost: the server is cut off from the leader"},
		{"listE.made", "onE", "the server makes an earlier list, E: the session is on it"},
		{"listE.taken", "(and onE (< listE.taken expired))", "the leader takes list E"},
		{"listE.left", "(and onE (>= listE.taken expired))", "list E is lost: the server is cut off from the leader"},
	},
}

// touches says that the leader touches the session when it takes a list with it, unless it has expired the
// session. A list that is taken later than that may as well be lost.
func touches(list string) string {
	return " (=> (and on" + list + " " + takes("list"+list+".taken") + ") (>= touched list" + list + ".taken))"
}

// takes says that the leader that counts takes something at a moment, and has not expired the session.
func takes(moment string) string { return "sameLeader (not newLeader) (< " + moment + " expired)" }

var orderOfF = formula{
	"order-of-F", cause, "", "(and " + inOrder("0.0", "F.sent", "F.noted") + inOrder("F.sent", "F.answered") + ")",
}

// own is the case of a client that is connected to the leader.
var own = write.and(atLeader).and(ending)

// atLeader is what passes between the leader and its own client, up to W.
var atLeader = problem{
	name:  "a client of the leader",
	reals: []string{"F.sent", "F.noted", "F.answered"},
	formulas: []formula{
		orderOfF,
		{"answered-before-W", rule, "S″ and touched depend only on what was answered before S", "(<= F.answered W.sent)"},
		{"noted", servers, "that it has heard of the session before it answers", "(<= F.noted F.answered)"},
		{"touches-at-once", servers, "at once, for any request but an identity, if the client is connected to the leader",
			"(=> (and " + takes("F.noted") + ") (>= touched F.noted))"},
	},
	events: []event{
		{"F.sent", "", "the client sends frame F"},
		{"F.noted", "", "its server, the leader, has frame F"},
		{"F.answered", "", "the client has the answer to F"},
	},
}

// moved is the case of a client that comes from another connection, and has shown nothing on this one but
// its handshake.
var moved = write.and(handshake).and(ending)

// handshake is what passes between that client, its server and the leader, up to W. F is the handshake.
var handshake = problem{
	name:  "a client that has moved",
	reals: []string{"F.sent", "F.noted", "F.answered"},
	formulas: []formula{
		orderOfF,
		{"greeted-before-W", rule, "or when we sent the handshake, if that is later", "(<= F.answered W.sent)"},
		{"handshake-first", servers, "at once, for the handshake of any connection, which a follower passes on",
			"(<= F.noted F.answered)"},
		{"handshake-touches", servers, "at once, for the handshake of any connection, which a follower passes on",
			"(=> (and " + takes("F.noted") + ") (>= touched F.noted))"},
	},
	events: []event{
		{"F.sent", "", "the client, which has lost its connection, sends the handshake F to another server"},
		{"F.noted", "", "the leader of that server has the handshake"},
		{"F.answered", "", "the client has the greeting"},
	},
}

// half is what the client takes for half a tick: see tick.half in session/loop.go. minimum is the
// minSessionTimeout of the servers, tickTold the value of WithTickTime.
var half = problem{
	name:  "what half a tick is",
	reals: []string{"tick", "tickTold", "minimum", "timeout", "h"},
	bools: []string{"isTold", "isLearned"},
	formulas: []formula{
		{"lengths", cause, "", "(and (> tick 0.0) (> minimum 0.0) (> timeout 0.0))"},
		{"told", rule, "Half a tick is half of what session.WithTickTime says", "(=> isTold (= h (/ tickTold 2.0)))"},
		{"learned", rule, "or what the manager has learned, or a quarter of the timeout", "(=> (and (not isTold) isLearned)" +
			" (= h (ite (< (/ timeout 4.0) (ite (> (/ minimum 4.0) 1.0) (/ minimum 4.0) 1.0))" +
			" (/ timeout 4.0) (ite (> (/ minimum 4.0) 1.0) (/ minimum 4.0) 1.0))))"},
		{"unknown", rule, "or a quarter of the timeout", "(=> (and (not isTold) (not isLearned)) (= h (/ timeout 4.0)))"},
		{"least-timeout", servers, "servers grant no less than two ticks", "(>= timeout minimum)"},
		{"two-ticks", assumed, "minSessionTimeout is not set below two ticks, unless the tick is told",
			"(=> (not isTold) (>= minimum (* 2.0 tick)))"},
		{"told-the-truth", assumed, "unless the tick is told", "(=> isTold (>= tickTold tick))"},
	},
	lengths: []event{
		{"tick", "", "a tick is"},
		{"minimum", "", "minSessionTimeout is"},
		{"timeout", "", "a client is granted a timeout of"},
		{"tickTold", "isTold", "WithTickTime says"},
		{"h", "", "the client takes for half a tick"},
	},
	goals: []formula{{"h-is-enough", rule, "", "(>= h (/ tick 2.0))"}},
}
