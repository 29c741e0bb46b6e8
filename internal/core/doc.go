// Package core is a manager and its live session: one session after another, the requests of each, and what a session owes the
// servers when callers have gone. Package session is its public face, and says what it promises.
//
// # Goroutines and mutexes
//
// A manager has one goroutine, which opens one session after another. A session has two: one makes connections and reads from
// them (package wire has the one that writes), and one ends the session when its end was marked. All others end by
// themselves or with the session, and the teardown waits for them. Callbacks of answers and events run in the goroutine
// that reads: they must not block, and take leaves of the mutexes only. No mutex is held while a request is under way.
//
// # Paths
//
// What users can call by package session checks its path. The rest is for package session, which has checked its
// paths.
//
// # Files
//
//	manager       one session after another; Close
//	config        the options, with their defaults
//	state         states and changes
//	services      what a manager does for the lock packages
//	session       a live session: its life, its clock, its connection
//	connect, link one connection after another; the present one
//	dialer        what the waits between dials go by
//	wireevents    the news of connections: greetings, events, refusals
//	watchdog      when the session ends for want of proof
//	teardown      what follows the end of a session
//	calls         requests as package wire sends them
//	answer        codes of servers as errors
//	sanity        checks of answers that are well-formed but cannot be true
//	request       reads, sets and deletes, for callers
//	retry         the loop that sends a request again
//	carried       writes that wait for the next connection
//	create, createmode, creates   creates, and what keeps those of one path apart
//	doubt, abandoned              nodes of creates whose reply was lost, or whose caller has gone
//	sharedsync    a sync that callers share
//	synced        a listing behind a sync
//	parents, containers           missing directories
//	multi, transaction            several operations in one transaction
//	removal       deletes that go on until they have succeeded
//	room          the account of ephemeral nodes, as the session uses it
//	watch         watches, as the session sets them
//	trace         calls hooks
//	errors        the errors
//	subscribe     subscribers of a manager
package core
