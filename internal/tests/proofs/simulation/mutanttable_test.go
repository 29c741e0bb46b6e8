package simulation

// mutant is a deliberate break of the protocol, as a change of the source's text, and why
// the simulation must notice.
type mutant struct {
	name  string
	kind  string // the lock type that must notice, or leaseKind; "" for any
	why   string
	edits []edit
}

// noticedBy has the package and the test that must notice a mutant, where no seed can.
var noticedBy = map[string]string{
	// Somebody has to delete one of the nodes between the transaction and the look for them.
	"some-for-all": "zklock TestTogetherFoundInSome",
	// Two who make all their nodes by one transaction have one order in all queues, so the seeds come to
	// no circle.
	"rest-kept": "zklock TestTogetherBusy",
	// One seed in thousands has a MultiLock lose a node while its session has no other room.
	"own-room-refused": "internal/room TestRoomForANodeInPlaceOfOneThatGoes",
	// No seed has new waiters come while a hook holds up a contender that was called back.
	"called-back-fails": "internal/hold TestLocalCalledBack",
	// A hold that is given up at once has been told of by hooks, so the world takes its place for one that was used.
	"kept-unused": "internal/hold TestUnwantedIsNotKept",
	// It costs a round trip or two, and no seed counts these.
	"parting-late": "zklock TestAsyncTakesOneRoundTrip",
	// No seed holds a leader up between its grant and the begin of its term.
	"term-called-late": "election TestRequestBeforeTerm",
	// Nothing in a world depends on the memory that a key takes.
	"key-never-forgotten": "zklock TestKeyedForgets",
	"turn-end-untold":     "zklock TestKeyedForgets",
	"key-readers-untold":  "rwlock TestKeyedReadersShare",
	// A kept place has to be there at the moment of a try, and nobody else for a while before.
	"kept-is-busy": "zklock TestTryKeptPlaces",
	// A delete of the same session has to be under way for longer than its round trip.
	"own-leaves-is-busy": "internal/place TestTryBesideOneThatLeaves",
	// What a try costs the servers no seed counts.
	"try-writes": "zklock TestTryOfSeveralLooksFirst",
	// In the seeds others are beside a call that enters anew nearly always, and may be the reason for its refusal.
	// The goroutine that writes begins after SASL in any case.
	"ready-first": "internal/wire TestSASLComesFirst",
	// The candidate has to come between two requests of one observer.
	"observer-gap": "election TestObserveArrival",
	// The simulation has no jobs. These have a day of their own.
	"tick-old-look":     "schedule TestOldLook",
	"tick-done-first":   "schedule TestHours",
	"tick-older":        "schedule TestHours",
	"tick-not-asked":    "schedule TestDoneMeanwhile",
	"tick-unlimited":    "schedule TestHours",
	"tick-not-followed": "schedule TestFollow",
	"tick-looked-once":  "schedule TestFollow",
}

// edit replaces a text that must be in the file exactly once.
type edit struct{ file, old, new string }

// leaseKind has a mutant tried by TestLeaseSeeds.
const leaseKind = "lease"

var mutants = []mutant{
	// One of the two alone is made good by the other.
	{"no-sync", "mutex", "a node whose create's reply was lost is overlooked on a server that is behind, and blocks its own maker",
		[]edit{
			{"internal/place/seek.go", "\tif err := first.s.SharedSync(ctx, first.q.dir, first.creation.Syncs()); err != nil {\n\t\treturn decide.Quit, err\n\t}\n", ""},
			{"internal/decide/listing.go", "case c.Doubt && n.ID == c.Node.ID && n.Name != c.Node.Name:", "case false:"},
		}},
	{"any-event", "mutex", "a change of data, or a lost connection, is taken for the predecessor's end",
		[]edit{{"internal/decide/sight.go", "case s.Event == Gone && !s.Moves:", "case true:"}}},
	{"no-own-watch", "mutex", "the predecessor's end grants a lock to one whose own node is gone",
		[]edit{{"internal/decide/sight.go", "\tcase Gone:\n\t\treturn Lost\n", "\tcase Gone:\n"}}},
	{"own-watch-unsettled", "mutex", "the predecessor's end grants a lock to one whose watch on its own node is not set yet, and whose node is gone",
		[]edit{{"internal/place/wait.go", "\tif seen == decide.Free {\n\t\tif err := a.answered(", "\tif false {\n\t\tif err := a.answered("}}},
	{"arrival-clock", "mutex", "an answer that took long is taken for proof of what was when it came",
		[]edit{{"internal/clock/link.go", "Touched: s.proof", "Touched: now"}}},
	{"no-rearm", "mutex", "after a change of data nobody watches any more, and the wake-up is lost",
		[]edit{{"internal/place/look.go", "\tcase core.WatchDeleted:\n", "\tcase core.WatchChanged:\n\t\treturn decide.Stands\n\tcase core.WatchDeleted:\n"}}},
	{"caller-cleanup", "mutex", "a cancelled call leaves its node, for as long as its session lives",
		[]edit{{"internal/place/leave.go", "\tif !a.created() {\n", "\tif !a.created() || ctx.Err() != nil {\n"}}},
	{"uncertain-forgotten", "mutex", "a node whose create's reply was lost stays when the call gives up",
		[]edit{{"internal/place/leave.go", "a.doubt = a.doubt || core.Uncertain(err)", "a.doubt = false"}}},
	{"release-once", "mutex", "a release whose connection is lost leaves the node",
		[]edit{
			{"internal/core/removal.go", "if s.Err() != nil || rounds.Pause(s.life, rounds.Untiring(next)) != nil {", "if _ = rounds.Untiring(next); true {"},
			{"internal/core/request.go", "_, err := do(ctx, s, info, erasing,", "_, err := do(ctx, s, info, never,"},
			{"internal/core/removal.go", "lost = lost && p.s.Err() == nil", "lost = false"},
		}},
	{"no-clock", "mutex", "who is cut off believes that he holds on",
		[]edit{{"internal/clock/lease.go", "return time.Duration(c.lease.Load()+last) - now.Sub(c.start)", "return time.Duration(c.lease.Load()+last) - now.Sub(c.start) + time.Hour"}}},
	{"negative-margin", "mutex", "who is cut off believes so for longer than the server waits",
		[]edit{{"internal/clock/beat.go", "return timeout / 10", "return -timeout / 5"}}},
	{"adopt-old", "mutex", "a node of an earlier session, which goes with that, is taken for one's own",
		[]edit{
			{"internal/place/acquire.go", "\tfor {\n\t\tif g.r.Data == nil && g", "\tid := \"\"\n\tfor {\n\t\tif g.r.Data == nil && g"},
			{"internal/place/acquire.go", "\t\tout, err := a.run(g.ctx)\n", "\t\tif id != \"\" {\n\t\t\ta.id = id\n\t\t}\n\t\tid = a.id\n\t\tout, err := a.run(g.ctx)\n"},
		}},
	{"old-listing", "mutex", "a listing from before one's own node decides who is ahead",
		[]edit{{"internal/place/enter.go", "if a.unlisted == nil && slices.Contains(a.names, a.node.Name) {", "if a.unlisted == nil || slices.Contains(a.names, a.node.Name) {"}}},
	{"order-by-name", "mutex", "the uuid decides who is first",
		[]edit{{"internal/decide/order.go", "if a.Sequence != b.Sequence {", "if a.Name == \"\" {"}}},
	{"left-unserved", "mutex", "the end of a contender of the same session that gave up is taken for the end of all before it",
		[]edit{{"internal/decide/sight.go", "s.Waits && s.Event == Stands", "s.Waits"}}},
	{"first-too-early", "mutex", "a contender tells those behind it that none is ahead, while it waits",
		[]edit{{"internal/place/wait.go", "a.own.Say(core.OwnerWaits)", "a.own.Say(core.OwnerFirst)"}}},
	{"downgrade-unseen", "rwlock", "a writer that is next comes in beside the reader that the one before has become",
		[]edit{{"internal/decide/holders.go", "return ahead.Prefix == kinds.PrefixWrite", "return false"}}},
	{"readers-pass", "rwlock", "a reader does not wait for the writer before it",
		[]edit{{"internal/decide/holders.go", "!Writes(me) && !Writes(ahead)", "!Writes(me)"}}},
	{"one-of-the-tail", "semaphore", "who waits watches one holder, as Curator's driver does, and another's release is overlooked",
		[]edit{
			{"internal/place/wait.go", "slices.Clone(ahead.Last)", "slices.Clone(ahead.Last[min(1, ahead.Beyond):][:1])"},
			{"internal/place/wait.go", "rest: ahead.Rest,", "rest: ahead.Rest + decide.Weigh(ahead.Last) - decide.Weigh(targets),"},
		}},
	{"weight-ignored", "semaphore", "who asks for three is counted as one",
		[]edit{{"internal/decide/holders.go", "return ahead.Weight", "return 1"}}},
	{"no-rollback", "multi", "who gets one lock and not the other keeps the one",
		[]edit{{"zklock/multi.go", "return nil, l.rollBack(ctx, err, t)", "return nil, err"}}},
	{"order-as-given", "multi", "two who take the same locks in another order wait for each other",
		[]edit{{"zklock/multi.go", "return strings.Compare(locks[i].Path(), locks[j].Path())", "return 0 * strings.Compare(locks[i].Path(), locks[j].Path())"}}},
	{"part-lost-unseen", "multi", "a lock that is lost while the next is waited for is believed to be held",
		[]edit{
			{"zklock/multi.go", "\t\tif l.Err() != nil {\n\t\t\terr = errLostEarlier\n\t\t}\n", ""},
			{"zklock/multilease.go", "\tfor _, one := range l.taken() {\n\t\tif err", "\tfor _, one := range l.taken()[max(0, len(l.taken())-1):] {\n\t\tif err"},
		}},
	{"one-missing", "multi", "who has made the nodes of all locks takes the last of them for granted",
		[]edit{{"internal/place/together.go", "if !a.isFree() {", "if !a.isFree() && i+1 < len(p) {"}}},
	{"some-for-all", "multi", "of nodes whose transaction's reply was lost, one is found and taken for all",
		[]edit{{"internal/place/seek.go", "\tcase n == len(all):\n", "\tcase n > 0:\n"}}},
	{"rest-kept", "multi", "who waits for one lock stands in the queues of those behind it, and keeps out others who want only these",
		[]edit{{"internal/place/together.go", "return p[i+1:].giveUp(ctx)", "return p[i+1 : i+1].giveUp(ctx)"}}},
	{"pass-lost", "local", "who has lost the lock hands it on to the next of the process",
		[]edit{
			{"internal/place/releasing.go", "\t\tr.err = l.Err()\n\t\treturn r\n", "\t\tr.err = l.Err()\n"},
			{"internal/hold/localkept.go", "l.turn != t || l.left == 0 && !undisturbed || !t.Stands()", "l.left == 0 && !undisturbed"},
			{"internal/hold/localkept.go", "if !t.Pass() {", "if false {"},
		}},
	{"pass-on-and-on", "local", "others never have their turn while somebody of the process waits",
		[]edit{{"internal/hold/localkept.go", "l.left == 0 && !undisturbed ||", ""}}},
	{"cancel-for-all", "local", "one who gives up takes the node from all who wait with him",
		[]edit{{"internal/hold/localstate.go", "w.in.Len() == 0 && by != nil {", "by != nil {"}}},
	{"last-one-stays", "local", "when all have given up, their node is left in the queue and nobody is there to have its turn",
		[]edit{
			{"internal/hold/localstate.go", "\t\tby.cancel()\n", ""},
			{"internal/hold/localstate.go", "\t\tg.Quit()\n", ""},
		}},
	{"called-back", "everything", "a contender whose turn came in the moment it was called back holds for nobody",
		[]edit{{"internal/hold/localstate.go", "if me.waiting.by != me { // called back", "if false { // called back"}}},
	{"called-back-fails", "", "a contender that was called back fails for the waiters that have come since",
		[]edit{{"internal/hold/localstate.go", "\tif me.waiting.by != me {\n\t\treturn\n\t}\n", ""}}},
	{"called-back-stays", "everything", "a contender whose turn came in the moment it was called back keeps its node",
		[]edit{{"internal/hold/localstate.go", "\t\tg.Quit()\n", ""}}},
	{"loss-for-all", "local", "a loss of the one who holds leaves those who wait behind him without a contender",
		[]edit{{"internal/place/over.go", "\tif t.by != nil {\n\t\tt.by.TurnOver()\n\t}\n", ""}}},
	{"key-forgotten-in-use", "everything", "a key is forgotten while a waiter is still in it, and its workers have several nodes",
		[]edit{{"internal/keyed/keyed.go", "e.calls > 0 || ", ""}}},
	{"held-key-forgotten", "everything", "a key is forgotten while it is held, and Unlock has nothing to give back",
		[]edit{{"zklock/keyed.go", "mx.holds.Any() || mx.lock.InUse()", "false"}}},
	{"key-never-forgotten", "", "the lock object of each key that was ever used stays in memory",
		[]edit{{"internal/keyed/keyed.go", "\tdelete(m.entries, e.key)\n", ""}}},
	{"key-written-by-readers", "everything", "a writer of a key is let in beside readers and writers",
		[]edit{{"rwlock/keyed.go", "return e.Lock.Acquire(ctx)", "return e.Lock.Reader().Acquire(ctx)"}}},
	{"key-readers-untold", "", "the lock of each key whose readers' place was kept stays in memory",
		[]edit{{"rwlock/keyed.go", "\t\t\t\trw.reader.WhenUnused(unused)\n", ""}}},
	{"turn-end-untold", "", "a lease that outlives its call keeps its key in memory for ever",
		[]edit{{"internal/hold/localkept.go", "\tdefer l.tellUnused()\n", ""}}},
	{"strangers-unseen", "mixed", "a lock of another type at the path is overlooked, and both are held",
		[]edit{{"internal/decide/listing.go", "case !slices.Contains(c.Kind.Prefixes, n.Prefix):", "case !slices.Contains(c.Kind.Prefixes, n.Prefix) && false:"}}},
	{"never-uncounted", "mixed", "nodes that are gone take the room of those that WithMaxNodes allows",
		[]edit{{"internal/room/account.go", "\ta.used = a.used.minus(n.size)\n", ""}}},
	{"counter-repeats", "resized", "past the end of the counter all contenders have one number, and each holds",
		[]edit{{"internal/place/seek.go", "if n.Sequence < 0 || n.Sequence == math.MaxInt32 {", "if n.Sequence < 0 && n.Sequence == math.MaxInt32 {"}}},
	{"used-up-for-ever", "resized", "a directory whose counter has ended stays although it is empty, and nobody can enter any more",
		[]edit{{"internal/place/leave.go", "if n.node.Sequence >= RestartFrom || n.node.Sequence < 0 {", "if n.node.Sequence < 0 {"}}},
	{"former-uncounted", "resized", "one that is slow comes in beside those behind it that a higher limit has let in",
		[]edit{{"internal/place/renew.go", "if !a.renewed || a.outdated || a.policy.Tightened == 0 {", "if !a.renewed || a.outdated || a.policy.Tightened >= 0 {"}}},
	{"outdated-goes", "resized", "a place from before the limit was lowered is not renewed",
		[]edit{{"internal/place/look.go", "\tif a.outdated {\n\t\treturn decide.Outdated, nil\n\t}\n", ""}}},
	{"limit-forgotten", "resized", "a limit that was set ends with the directory, when nobody uses it for a while",
		[]edit{{"internal/place/config.go", "\t\tops = append(ops, &zk.CreateRequest{Path: child})\n", ""}}},
	{"raised-again", "resized", "a place that is renewed by a lower limit, which has been raised again meanwhile, is taken for free",
		[]edit{{"semaphore/limit.go", "if t.Lowered = l.LastLowered(c); t.Lowered != 0 {", "if t.Lowered, _ = l.Tightened(c); t.Lowered != 0 {"}}},
	{"stray-unlock", "mixed", "Unlock takes what a Do holds",
		[]edit{
			{"internal/hold/unlock.go", "return held.calls[viaLock] == 0 })", "return held.over() })"},
			{"internal/hold/unlock.go", "\t\tif err := h.giveBack(held, viaLock, place.Done); !errors", "\t\tby := viaLock\n\t\tif held.calls[viaLock] == 0 {\n\t\t\tby = viaDo\n\t\t}\n\t\tif err := h.giveBack(held, by, place.Done); !errors"},
		}},
	{"batch-loses", "batched", "after a batch has failed, its last part is not sent again, and its caller waits for ever",
		[]edit{{"internal/outbox/outbox.go", "for _, one := range parts {\n\t\tif one.Batch = nil", "for _, one := range parts[:len(parts)-1] {\n\t\tif one.Batch = nil"}}},
	{"batch-doubles", "batched", "a create of a batch that was carried out is sent again, and its caller has two nodes",
		[]edit{{"internal/outbox/outbox.go", "case r.Code != codec.CodeOK || anyRefused(r.Results):", "case true:"}}},
	{"one-token", "batched", "two creates of one directory are sent in one transaction, and two holders have one token",
		[]edit{{"internal/outbox/waiting.go", "d.round == w.round || !d.writes(e)", "!d.writes(e)"}}},
	{"unsent-lost", "batched", "a write that has not left when its connection ends is forgotten, and its caller waits for ever",
		[]edit{{"internal/core/carried.go", "\tr.all = append(r.all, c)\n", ""}}},
	{"limit-remembered", "resized", "a limit that was read once counts on after it was lowered",
		[]edit{{"internal/place/survey.go", "known.Changed == stat.Mzxid {", "stat.Mzxid != 0 {"}}},
	{"raise-unseen", "resized", "those who wait are not told of a higher limit",
		[]edit{{"internal/place/look.go", "a.configW.Event() != core.WatchPending || stat", "stat"}}},
	{"limit-between", "resized", "a limit that was lowered between the listing and the watch on it is not seen",
		[]edit{{"internal/place/look.go", " || stat != nil && stat.Mzxid != a.config.Changed", ""}, {"internal/place/look.go", "_, stat := known(a.configW)\n\treturn", "return"}}},

	// Places that are kept after a release.
	{"kept-deaf", "kept", "a place that nobody uses stays in the way of a newcomer",
		[]edit{{"internal/hold/localkept.go", "case !t.GiveUpKept(changed):", "case true:"}}},
	{"kept-unwatched", "kept", "nobody watches for newcomers",
		[]edit{{"internal/core/list.go", "s.listing(ctx, full, w != nil)", "s.listing(ctx, full, false)"}}},
	{"kept-joined", "kept", "the watch is taken for set because an earlier one seems to be, which our own create uses up",
		[]edit{
			{"internal/core/list.go", "s.listing(ctx, full, w != nil)", "s.listing(ctx, full, w != nil && !s.watches.Children.Several(full))"},
			{"internal/watches/table.go", "// Alone returns", "func (t *Table) Several(path string) bool {\n\tt.mu.Lock()\n\tdefer t.mu.Unlock()\n\te := t.m[path]\n\treturn e != nil && len(e.alone) > 1\n}\n\n// Alone returns"},
			// and does not end with the event of the earlier one
			{"internal/watches/table.go", "\tfor _, w := range e.alone {\n\t\tw.fire(event)\n\t}\n", "\tfor _, w := range e.alone {\n\t\tif event == Broken || w.ready.Has() {\n\t\t\tw.fire(event)\n\t\t\tcontinue\n\t\t}\n\t\tleft := t.entryLocked(path)\n\t\tleft.alone = append(left.alone, w)\n\t}\n"},
		}},
	{"kept-crowded", "kept", "a place is used again although the listing on entry has shown a contender behind it",
		[]edit{{"internal/decide/listing.go", "seen.Crowded = seen.Crowded || c.Lazy && WaitsFor(c.Kind, n, c.Node)", "seen.Crowded = false"}}},
	{"kept-reconnected", "kept", "a place is used again on the next connection, on which there is no watch yet",
		[]edit{
			{"internal/hold/keep.go", "t.watch.Event() == core.WatchPending }", "(t.watch.Event() == core.WatchPending || t.watch.Event() == core.WatchBroken) }"},
			{"internal/hold/localkept.go", "case !t.GiveUpKept(changed):", "case !changed || !t.GiveUpKept(changed):"},
		}},
	{"kept-lost", "kept", "a place is used again after its session has ended",
		[]edit{
			{"internal/hold/localstate.go", "!(t.usable(now) && t.Stands()):", "!(t.usable(now) && t.Stands() || t.Lost() && now.Before(t.until)):"},
			{"internal/place/kept.go", "// Timeout returns", "func (t *Turn) Lost() bool { return t.s.Err() != nil }\n\n// Timeout returns"},
			// The place is still there then: neither the end of its connection nor that of its session ends it.
			{"internal/hold/localkept.go", "case !t.GiveUpKept(changed):", "case !changed || !t.GiveUpKept(changed):"},
			{"internal/place/over.go", "func (t *Turn) lose(cause error) {\n", "func (t *Turn) lose(cause error) {\n\tif t.keptAt.Load() != 0 && !errors.Is(cause, errDeleted) {\n\t\treturn\n\t}\n"},
		}},
	{"kept-for-ever", "kept", "a place is kept after its time",
		[]edit{{"internal/hold/keep.go", "t.until = now.Add(min(d, t.timeout))", "t.until = now.Add(max(d, time.Hour))"}}},
	{"kept-and-left", "kept", "a place that was given up stays",
		[]edit{{"internal/place/over.go", "\tt.retire(t.ctx, t.s.Remove)\n", "\tt.conclude(decide.Quit, ErrReleased)\n"}}},
	{"kept-passed-on", "kept", "a place is handed over again and again although another contender may have come",
		[]edit{{"internal/hold/localkept.go", "l.left == 0 && !undisturbed ||", "l.left == 0 && !undisturbed && t.watch == nil ||"}}},
	{"kept-uncounted", "kept", "a hand-over does not count although another contender may have come",
		[]edit{{"internal/hold/localkept.go", "\tif !undisturbed {\n\t\tl.left--\n", "\tif t.watch == nil {\n\t\tl.left--\n"}}},
	{"kept-token", "kept", "tokens decrease",
		[]edit{{"internal/place/guard.go", "t.token, t.tokenErr = czxid, err", "t.token, t.tokenErr = -czxid, err"}}},
	{"kept-readers-join", "kept", "a reader joins those that hold although a writer waits",
		[]edit{{"internal/hold/localstate.go", "l.many && t.undisturbed(now) && t.Stands():", "l.many && (t.undisturbed(now) || t.watch != nil && !t.pending()) && t.Stands():"}}},
	{"kept-unused", "kept", "a caller that did not get its locks keeps the place of one of them",
		[]edit{{"internal/hold/localkept.go", "if end == place.Unwanted || l.turn != t ||", "if l.turn != t ||"}}},
	{"kept-try", "kept", "a try does not wait for a place that nobody uses",
		[]edit{{"internal/place/tries.go", "keeperPatience = 250 * time.Millisecond", "keeperPatience = 0 * time.Millisecond"}}},
	{"kept-readers-stay", "kept", "readers set their watch again although a writer waits",
		[]edit{{"internal/place/kept.go", " &&\n\t\t!decide.KeepsWaiting(kind, t.node, nodes)\n", "\n"}}},

	// What shows only where all locks of a process meet in a session that may have few nodes.
	{"own-room-refused", "everything", "a MultiLock that has lost one of its nodes is refused, although the room of that node is about to come back to it",
		[]edit{{"internal/room/queue.go", "one.lacksLocked(one.v.leaving.beyond(one.v.excessLocked()))", "one.lacksLocked(Size{})"}}},
	{"room-too-early", "everything", "the room of a node is given to others before the node is gone",
		[]edit{{"internal/room/nodes.go", "\t*sum = sum.plus(n.size)\n", "\t*sum = sum.plus(n.size)\n\ta.closeLocked(n)\n\ta.grantLocked()\n"}}},
	{"kept-takes-room", "everything", "places that nobody uses take the room of callers that have none",
		[]edit{{"internal/room/queue.go", "case some && spare != nil:", "case some && spare != nil && *yield != nil:"}}},

	// Elections.
	{"term-not-over", "election", "Resign ends a term that is over",
		[]edit{{"election/term.go", "\te.now = nil\n", ""}}},
	{"resign-deaf", "election", "a term goes on after Resign",
		[]edit{{"election/term.go", "\tnow.end(ErrResigned)\n\treturn true", "\treturn true"}}},
	{"revoke-deaf", "election", "a leader that is asked to resign leads on",
		[]edit{{"election/term.go", "\t\te.resign(t)\n", ""}}},
	{"loss-ends-run", "election", "a candidate that has lost the leadership campaigns no more",
		[]edit{{"election/term.go", "return t.called != nil || errors.Is(t.lease.Err(), session.ErrLost)", "return t.called != nil"}}},
	{"one-run", "election", "after a Run nobody can call another one",
		[]edit{{"election/run.go", "\te.running = false\n", ""}}},
	{"observer-skips", "election", "a write to the leader's node is taken for its end, and the next candidate for the leader",
		[]edit{{"internal/place/line.go", "l.watch.Event() == core.WatchDeleted && len(l.nodes) > 0", "l.watch.Event() != core.WatchPending && len(l.nodes) > 0"}}},
	{"observer-gap", "election", "a candidate that comes before the watch for it is set is not seen",
		[]edit{{"internal/place/line.go", "if err := l.list(ctx, s); err != nil || len(l.nodes) == 0 {\n\t\treturn kinds.Contender{}, err\n\t}\n\treturn l.watchFirst(ctx, s) // it came", "if true {\n\t\treturn kinds.Contender{}, err\n\t}\n\treturn l.watchFirst(ctx, s) // it came"}}},
	{"observer-deaf", "election", "an observer looks no more after its connection was lost",
		[]edit{{"internal/place/line.go", "\tcase <-event:\n", "\tcase <-event:\n\t\t\tfor l.watch.Event() == core.WatchBroken {\n\t\t\t\t<-ctx.Done()\n\t\t\t\treturn ctx.Err()\n\t\t\t}\n"}}},
	{"observer-repeats", "election", "an observer is told again of a leader that it knows",
		[]edit{{"internal/place/line.go", "case !l.told || l.last != first.Token:", "default:"}}},
	{"left-unsaid", "everything", "an Unlock that waits for no server says nothing of a loss",
		[]edit{{"internal/place/releasing.go", "Leave() error {\n\tif r.removal == nil {\n\t\treturn r.conclude(nil)", "Leave() error {\n\tif r.removal == nil {\n\t\treturn nil"}}},
	{"parting-late", "", "the next Lock of a MultiLock can get ahead of the deletes of the last one, and find its own nodes",
		[]edit{{"internal/core/transaction.go", "r.s.isReady() && r.deleteAll(ctx) {", "r.s.begin(func() { r.deleteAll(ctx) }) == nil {"}}},

	// Jobs at ticks.
	{"tick-old-look", "", "a replica that is told an old record by a server that is behind runs a tick that is done",
		[]edit{{"schedule/record.go", "j.write(ctx, lease, begun, last.version)", "j.write(ctx, lease, begun, -1)"}}},
	{"tick-done-first", "", "a tick counts as done before its job has run, and is left out if the replica dies",
		[]edit{{"schedule/record.go", "j.write(ctx, lease, begun, last.version)", "j.finish(ctx, lease, begun)"}}},
	{"tick-older", "", "a replica that is late runs a tick that is over",
		[]edit{{"schedule/run.go", "return c > 0", "return true"}}},
	{"tick-not-asked", "", "a replica that has waited for the lock does not look whether the tick is done by now",
		[]edit{{"schedule/record.go", "case !j.open(last.Record, tick):", "case false:"}}},
	{"tick-unlimited", "", "a tick is tried more often than it may be",
		[]edit{{"schedule/run.go", "return j.maxTries == 0 || last.Tries < j.maxTries", "return true"}}},
	{"tick-not-followed", "", "a replica waits for the end of a job that it may not repeat",
		[]edit{{"schedule/run.go", "case !j.open(last.Record, tick):\n\t\t\treturn true", "case !j.open(last.Record, tick):\n\t\t\treturn false"}}},
	{"tick-looked-once", "", "a replica that waits does not look at the record again when that has changed",
		[]edit{{"schedule/run.go", "case <-changed:\n", "case <-changed:\n\t\t\treturn false\n"}}},

	// The lease clock: each of these says too much in a world with followers.
	{"write-for-request", leaseKind, "takes the write itself for the request before it: when that was sent the last list can be old",
		[]edit{{"internal/clock/trail.go", "at, ok := t.request(now)\n\tif !ok {", "at, ok := now, true\n\tif !ok {"}}},
	{"sent-for-answered", leaseKind, "counts a frame that was on its way when the list was made",
		[]edit{{"internal/clock/trail.go", "t.frames.add(sent, now)", "t.frames.add(sent, sent)"}}},
	{"handshake-proves", leaseKind, "takes the handshake for a proof, as if what was proven on another connection were true of this one's leader",
		[]edit{{"internal/core/wireevents.go", "\t\ts.clock.Heard(sent)\n", "\t\ts.clock.Prove(sent)\n"}}},
	{"refusal-proves", leaseKind, "takes what a follower refuses by itself for a quorum's answer",
		[]edit{{"internal/clock/evidence.go", "case codec.CodeOK, codec.CodeNoNode, codec.CodeNodeExists, codec.CodeBadVersion, codec.CodeNotEmpty:", "case codec.CodeOK, codec.CodeNoNode, codec.CodeNodeExists, codec.CodeBadVersion, codec.CodeNotEmpty, codec.CodeNoAuth, codec.CodeThrottled:"}}},
	{"kept-is-busy", "", "a try takes a place that nobody uses for that of a holder",
		[]edit{{"internal/place/tries.go", "if ahead != nil && a.inUse(ahead) {", "if ahead != nil {"}}},
	{"own-leaves-is-busy", "", "a try takes a node of its session that is being deleted for that of a holder",
		[]edit{{"internal/place/tries.go", "if !slices.ContainsFunc(names, leaves) {", "if slices.ContainsFunc(names, leaves) || len(names) >= 0 {"}}},
	{"try-writes", "", "a try of several looks only at those that it takes by one transaction",
		[]edit{{"internal/hold/party.go", "\tcase len(p.members) > 0:\n", "\tcase len(p.members) >= 0:\n\t\treturn nil\n\tcase len(p.members) > 0:\n"}}},
	{"look-grants", "", "a try that has seen nobody in its way holds, whoever has entered since",
		[]edit{{"internal/place/run.go", "case ahead.MayGo():", "case ahead.MayGo() || a.entry.Try && a.limited == nil:"}}},
	{"ready-first", "", "takes a connection for ready, and counts its heartbeats, before the server knows who the client is",
		[]edit{{"internal/wire/serve.go", "\tif err := w.prove(p); err != nil {\n", "\tw.begin(sent, now, g.Timeout())\n\tif err := w.prove(p); err != nil {\n"}}},
}
