// Package scaling measures what the locks' protocol costs, and how that grows with those who
// contend, with sessions and with locks: round trips, requests, bytes and watches. All of it
// is in its test, which fails when it costs more than is promised.
//
//	go test -run TestScaling ./internal/scaling
//	cd internal/scaling && go test -count=1 -run TestScaling -write    also writes docs/performance.md
//
// What is simulated: the clients are the real ones, ours and go-zookeeper's, as is the
// protocol between them and the server of package zktest. They run in a bubble of
// testing/synctest, in which every frame takes a millisecond each way and time stands still
// while anything can run. So a write takes one round trip of two milliseconds, and so does a
// read, and times come out as whole numbers of round trips, on any machine.
//
// What is not: processors, which take no time here, the log that a real server forces to
// disk, the quorum that a write waits for, the width of the network, and what waits for any
// of these when there is more than they can do. There is one server, so nothing is ever
// behind. An ensemble's limits are therefore not seen here; bench measures with real ones.
//
// What happens at one instant happens in any order. That is seldom so in the world, and here
// it is the rule: all locks are held for no time, so that a holder leaves in the moment in
// which another looks who is ahead. The test must hold in any order.
package scaling
