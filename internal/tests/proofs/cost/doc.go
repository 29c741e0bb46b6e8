// Package cost bounds what the locks' protocol costs in round trips, requests, writes and watches, and how long contenders
// wait beside others that take the lock again and again. It has only tests, which fail when the protocol costs more than
// promised. With -v they print the figures.
//
// Clients and protocol are the real ones. They run in a bubble of testing/synctest, in which every frame takes a
// millisecond each way and nothing else takes any time. So a write takes one round trip of two milliseconds, and so does a
// read, and times come out as whole numbers of round trips, on any machine. There is one server.
//
// Events of one instant come in any order. In the world that is rare, and here it is the rule: all locks are held for no
// time, so that a holder leaves at the instant at which another contender lists the queue. The tests must pass with any
// order.
package cost
