// Package placemodel explores all that can happen to a few contenders for a lock, on the functions that
// decide in package decide: Step, Read of a Contender, BySight, the tails, and the policies of the lock
// packages. Around them is a small model of the servers, of the connections, and of what packages place and hold do
// between two decisions. The explorer visits each state of a world once, and says in which of them a promise
// is broken, with a schedule that a person can read.
//
//	go test ./internal/tests/proofs/placemodel                     # small worlds, in seconds
//	go test -v -run TestBroken ./internal/tests/proofs/placemodel  # prints schedules
//	make models                                                    # all worlds
//
// docs/places.md has the promises, the worlds, and the limits of the model.
//
// # What stands for what
//
// Each function of the model on the left stands for those on the right, which a test compares with the code
// (names_test.go).
//
//	places_test.go: hear           internal/place/run.go: run, enter, carryOut, listAgain
//	places_test.go: settle         internal/place/run.go: settle
//	places_test.go: settle         internal/place/acquire.go: Attempts
//	places_test.go: judge          internal/place/run.go: judge
//	places_test.go: answerList     internal/place/survey.go: list, listChildren
//	places_test.go: answerReading  internal/place/survey.go: survey, surveyBoth
//	places_test.go: shown          internal/place/enter.go: arrive
//	places_test.go: sync           internal/core/request.go: SharedSync
//	places_test.go: sought         internal/place/seek.go: seek, found, removeTwin
//	places_test.go: decide         internal/place/survey.go: decide, read
//	places_test.go: decide         internal/place/beside.go: sharePlace
//	places_test.go: free           internal/place/look.go: free
//	places_test.go: startWait      internal/place/wait.go: startWait, watchAll
//	places_test.go: startWait      internal/place/watch.go: watch, lastWatch
//	places_test.go: watch          internal/watches/table.go: Join
//	places_test.go: plain          internal/place/look.go: plain
//	places_test.go: look           internal/place/wait.go: look, seen
//	places_test.go: look           internal/place/watch.go: answered
//	places_test.go: sight          internal/place/look.go: sight, reconfigured
//	places_test.go: leave          internal/place/leave.go: quit, leave, mayStand, removeBy
//	servers_test.go: carryOut      internal/place/enter.go: create, startCreate, newName
//	servers_test.go: answerWatch   internal/watches/table.go: Land
//	servers_test.go: fire          internal/watches/table.go: Fired
//	servers_test.go: remove        internal/core/removal.go: Remove
//	servers_test.go: sweep         internal/core/removal.go: Sweep
//	faults_test.go: cut            internal/watches/table.go: breakAll
//	faults_test.go: cutAttempt     internal/place/enter.go: create
//	faults_test.go: lose           internal/place/run.go: endOf
//	calls_test.go: again           internal/place/acquire.go: Attempts
//	calls_test.go: renew           internal/place/acquire.go: Attempts
//	calls_test.go: release         internal/place/over.go: release, retire
//	calls_test.go: downgrade       internal/place/beside.go: Beside
//	calls_test.go: decideTogether  internal/place/together.go: attempt, giveUp
//	calls_test.go: foundTogether   internal/place/seek.go: seek
//	calls_test.go: goOn            internal/place/together.go: enter
//	calls_test.go: proceed         internal/place/together.go: Take
//	limits_test.go: setRule        internal/place/renew.go: setRule
//	limits_test.go: isOutdated     internal/place/renew.go: isOutdated
//	limits_test.go: takeOver        internal/place/renew.go: takeOver
//	limits_test.go: behind         internal/place/renew.go: behind
//	local_test.go: join            internal/hold/localstate.go: join, takeLocked
//	local_test.go: usable          internal/hold/keep.go: usable
//	local_test.go: use             internal/hold/localstate.go: useLocked
//	local_test.go: contend         internal/hold/localstate.go: goOn, contendLocked, contend
//	local_test.go: turnBegins      internal/hold/localstate.go: holdLocked
//	local_test.go: turnBegins      internal/hold/keep.go: newTenure
//	local_test.go: passOn          internal/hold/localkept.go: PassOn, keepLocked
//	local_test.go: passOn          internal/hold/keep.go: undisturbed
//	local_test.go: endTurn         internal/hold/localkept.go: TurnOver
//	local_test.go: leaveKept       internal/hold/localkept.go: GiveUpKept, leaveLocked
//	local_test.go: withdraw        internal/hold/localstate.go: withdraw
//	local_test.go: placed          internal/core/removal.go: RemoveAfter
//	moves_test.go: intrude         internal/hold/localkept.go: Intrude
//	moves_test.go: expireKept      internal/hold/localkept.go: expire
//	moves_test.go: loseNode        internal/place/over.go: lose, loseNode
package placemodel
