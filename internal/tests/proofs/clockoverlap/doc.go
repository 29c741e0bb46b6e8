// Package clockoverlap tests on real servers that no lease outlives its session.
//
// A leader learns that the client of a follower is alive only from the follower's answers
// to its pings, twice a tick. A client that counts its session from anything later believes
// in it for longer than the leader does. That shows only if the follower is cut off at the
// right moment, so the tests look for that moment: they watch the link between leader and
// follower, and cut it in front of the answer that would have helped. Then the leader knows
// only what the answers before it said.
//
//	go test -v ./internal/tests/proofs/clockoverlap -clock 10m
//
// Each test is one schedule of events on three servers with ZooKeeper's default tick of 2 s, an ensemble of
// its own. It repeats the schedule for the time that -clock sets. Three tests run at once.
//
// # One cut
//
// Several holders are connected to the follower, with timeouts of 4, 6 and 10 s. Some are told the tick and some are
// not. Some leave everything to their session's heartbeats, some write something at the last moment, and some read and
// write all the time. Each has a rival, connected to the leader, that waits for the same lock. Every holder is one try.
//
// When a rival's Acquire returns, the test asks the holder's lease. Err() == nil is an
// overlap. A lease can be lost before the cut, because the machine was busy, or because the
// leader stood still for longer than the session can be certain. That is not a try: it is
// counted as lost early.
//
// # The moment
//
// A leader expires sessions at multiples of a tick, by the clock of System.nanoTime, and
// pings every half tick from when it was elected. So a session lives up to a tick longer than
// its timeout, depending on how the two fall together, and with most elections an overlap is
// impossible. Before a try, the test stops the leader's process for less than half a tick if
// necessary, so that sessions of holders expire 20 to 350 ms after their timeout.
//
// # Wrong clocks
//
// Other tests have clocks that run at different rates, or wall clocks that are stepped, and the same
// schedules. Servers get their clocks from libfaketime, and clients from package fakeclocks. Only the ratio of
// two rates matters, so it is always the servers whose rate is changed. A rate at which the lease clock must
// fail shows that the tests would notice:
//
//	go test -v ./internal/tests/proofs/clockoverlap -run 'TestRates|Stepped' -rates 0.8,1.02,1.2 -wrongclock 1m
package clockoverlap
