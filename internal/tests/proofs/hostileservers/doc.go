// Package hostileservers tries the locks against servers that break the protocol. It has only tests.
//
// A man in the middle, between a manager and an honest server of zktest, changes the server's
// answers by a script. The script is that of a named attack, or is made of a fuzzer's bytes.
// An honest client wants the same lock, and a third client looks at the tree. Each run has a
// bubble of testing/synctest of its own, where timeouts take no time. Every type of lock is
// attacked. TestNoSpin has the server give the same answer for a minute, and counts requests.
//
//	go test ./internal/tests/proofs/hostileservers
//	go test ./internal/tests/proofs/hostileservers -run '^$' -fuzz FuzzHostile -fuzztime 5m
//
// The conditions are in world_test.go: no panic, no lease on a node that is not ours or has too
// many others ahead, a bounded number of requests in a second, calls that end with their
// context, Close in bounded time, no goroutine left, bounded memory, and no harm that lasts
// after the attack. A server can lie about its tree within the protocol, and any client has to
// believe that. In such attacks the lease and the lasting harm are not checked.
package hostileservers
