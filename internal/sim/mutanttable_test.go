package sim

// mutant is a deliberate break of the protocol, as a change of the source's text, and why
// the simulation must notice.
type mutant struct {
	name  string
	kind  string // the lock type that must notice; "" for any
	why   string
	edits []edit
}

// edit replaces a text that must be in the file exactly once.
type edit struct{ file, old, new string }

var mutants = []mutant{
	// One of the two alone is made good by the other.
	{"no-sync", "mutex", "a node whose create's reply was lost is overlooked on a server that is behind, and blocks its own maker",
		[]edit{
			{"queue/attempt.go", "\tif err := a.s.Sync(ctx, a.q.dir); err != nil {\n\t\treturn nil, err\n\t}\n", ""},
			{"queue/attempt.go", "\tif a.doubt {\n\t\tnodes", "\tif false {\n\t\tnodes"},
		}},
	{"any-event", "mutex", "a change of data, or a lost connection, is taken for the predecessor's end",
		[]edit{{"queue/look.go", "case event == session.WatchDeleted && !targets[i].replaces:", "case true:"}}},
	{"no-own-watch", "mutex", "the predecessor's end grants a lock to one whose own node is gone",
		[]edit{{"queue/look.go", "\tcase session.WatchDeleted:\n\t\treturn placeLost\n", "\tcase session.WatchDeleted:\n"}}},
	{"arrival-clock", "mutex", "an answer that took long is taken for proof of what was when it came",
		[]edit{{"session/wire.go", "w.events.confirmed(sent.at, p)", "w.events.confirmed(time.Now(), p)"}}},
	{"no-rearm", "mutex", "after a change of data nobody watches any more, and the wake-up is lost",
		[]edit{{"queue/look.go", "again = true // changed, or broken", "again = again || event == session.WatchBroken // changed, or broken"}}},
	{"caller-cleanup", "mutex", "a cancelled call leaves its node, for as long as its session lives",
		[]edit{{"queue/attempt.go", "\tif a.creation == nil {\n\t\treturn\n", "\tif a.creation == nil || ctx.Err() != nil {\n\t\treturn\n"}}},
	{"trust-watches", "mutex", "events are told in another order after a reconnect",
		[]edit{{"session/session.go", "\tif !up {\n\t\t// No watch", "\tif !up && s.err != nil {\n\t\t// No watch"}}},
	{"no-id-check", "mutex", "another session answers on the connection, and the old one's locks count on",
		[]edit{{"session/session.go", "if s.ID() != g.session {", "if false {"}}},
	{"uncertain-forgotten", "mutex", "a node whose create's reply was lost stays when the call gives up",
		[]edit{{"queue/attempt.go", "a.doubt = a.doubt || session.Uncertain(err)", "a.doubt = false"}}},
	{"release-once", "mutex", "a release whose connection is lost leaves the node",
		[]edit{
			{"session/cleanup.go", "case classify(r.err) == answered:", "case true:"},
			{"session/request.go", "RequestInfo{Op: \"delete\", Path: path}, always,", "RequestInfo{Op: \"delete\", Path: path}, never,"},
		}},
	{"no-clock", "mutex", "who is cut off believes that he holds on",
		[]edit{{"session/clock.go", "return time.Duration(c.lease.Load()) - since", "return time.Duration(c.lease.Load()) - since + time.Hour"}}},
	{"negative-margin", "mutex", "who is cut off believes so for longer than the server waits",
		[]edit{{"session/clock.go", "return timeout / 10", "return -timeout / 5"}}},
	{"adopt-old", "mutex", "a node of an earlier session, which goes with that, is taken for one's own",
		[]edit{
			{"queue/acquire.go", "\tfor {\n\t\ts, err := q.sessionFor(ctx, how)", "\tid := \"\"\n\tfor {\n\t\ts, err := q.sessionFor(ctx, how)"},
			{"queue/acquire.go", "a := newAttempt(q, s, r, how)\n", "a := newAttempt(q, s, r, how)\n\t\tif id != \"\" {\n\t\t\ta.id = id\n\t\t}\n\t\tid = a.id\n"},
		}},
	{"old-listing", "mutex", "a listing from before one's own node decides who is ahead",
		[]edit{{"queue/attempt.go", "if listErr == nil && slices.Contains(names, a.node.Name) {", "if listErr == nil {"}}},
	{"order-by-name", "mutex", "the uuid decides who is first",
		[]edit{{"queue/node.go", "if a.Sequence != b.Sequence {", "if a.Name == \"\" {"}}},
	{"downgrade-unseen", "rwlock", "a writer that is next comes in beside the reader that the one before has become",
		[]edit{{"rwlock/policy.go", "return ahead.Prefix == queue.PrefixWrite", "return false"}}},
	{"readers-pass", "rwlock", "a reader does not wait for the writer before it",
		[]edit{{"rwlock/policy.go", "!writes(me) && !writes(ahead)", "!writes(me)"}}},
	{"one-of-the-tail", "semaphore", "who waits watches one holder, as Curator's driver does, and another's release is overlooked",
		[]edit{
			{"queue/policy.go", "\t\t\treturn remaining[i:]\n", "\t\t\treturn remaining[i+1 : i+2]\n"},
			{"queue/policy.go", "\treturn remaining\n", "\treturn remaining[:1]\n"},
			{"queue/wait.go", "weigh(ahead[:len(ahead)-len(targets)])", "weigh(ahead) - weigh(targets)"},
		}},
	{"weight-ignored", "semaphore", "who asks for three is counted as one",
		[]edit{{"semaphore/limit.go", "return ahead.Weight", "return 1"}}},
	{"no-rollback", "multi", "who gets one lock and not the other keeps the one",
		[]edit{{"zklock/multi.go", "return nil, l.rollBack(ctx, err)", "return nil, err"}}},
	{"order-as-given", "multi", "two who take the same locks in another order wait for each other",
		[]edit{{"zklock/multi.go", "return compareNames(locks[i].FullName(), locks[j].FullName())", "return 0 * compareNames(locks[i].FullName(), locks[j].FullName())"}}},
	{"part-lost-unseen", "multi", "a lock that is lost while the next is waited for is believed to be held",
		[]edit{
			{"zklock/multi.go", "\t\tif l.Err() != nil {\n\t\t\terr = errLostEarlier\n\t\t}\n", ""},
			{"zklock/multilease.go", "\tfor _, one := range l.leases {\n\t\tif err", "\tfor _, one := range l.leases[max(0, len(l.leases)-1):] {\n\t\tif err"},
		}},
	{"pass-lost", "local", "who has lost the lock hands it on to the next of the process",
		[]edit{
			{"queue/lease.go", "\tif first {\n\t\tremoval = l.t.release(removing)\n\t}\n", "\tremoval = l.t.release(removing)\n"},
			{"queue/local.go", "l.turn != t || l.left == 0 || l.waiting.Len() == 0 || !t.stands()", "l.left == 0 || l.waiting.Len() == 0"},
		}},
	{"pass-on-and-on", "local", "others never have their turn while somebody of the process waits",
		[]edit{{"queue/local.go", "l.left == 0 ||", ""}}},
	{"cancel-for-all", "local", "one who gives up takes the node from all who wait with him",
		[]edit{{"queue/local.go", "if l.waiting.Len() == 0 && l.envoy != nil", "if l.envoy != nil"}}},
	{"last-one-stays", "local", "when all have given up, their node is left in the queue and nobody is there to have its turn",
		[]edit{
			{"queue/local.go", "l.envoy.cancel != nil {\n\t\tl.envoy.cancel()", "l.envoy.cancel != nil {"},
			{"queue/local.go", "\t\tif err == nil {\n\t\t\ta.leave(ctx, context.Canceled)\n\t\t}\n", ""},
		}},
	{"loss-for-all", "local", "a loss of the one who holds leaves those who wait behind him without a contender",
		[]edit{{"queue/turn.go", "\tif t.local != nil {\n\t\tt.local.over(t)\n\t}\n", ""}}},
	{"any-owner", "unfair", "another session's node is taken for one's own",
		[]edit{{"session/claim.go", "return stat.EphemeralOwner == c.s.ID()", "return stat.EphemeralOwner != 0"}}},
	{"delete-again", "unfair", "a delete whose reply was lost is repeated, and hits the next holder's node",
		[]edit{{"session/claim.go", "if stat == nil || !c.Owns(stat) {", "if stat == nil {"}}},
}
