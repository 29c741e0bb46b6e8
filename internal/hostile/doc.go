// Package hostile tries the locks against servers that say what no server says. All of it
// is in its tests.
//
// A man in the middle, between a manager and an honest server of zktest, changes what the
// server sends, by a script: that of a named attack, or one made of a fuzzer's bytes. Beside
// it an honest client wants the same lock, and a third looks at the tree. Each run has a
// bubble of testing/synctest of its own, where timeouts take no time. Every type of lock is
// attacked. TestNoSpin has the server say the same thing for a minute, and counts requests.
//
//	go test ./internal/hostile
//	go test ./internal/hostile -run '^$' -fuzz FuzzHostile -fuzztime 5m
//
// What must hold is in world_test.go: no panic, no lease on a node that is not ours or has too
// many before it, no more than so many requests in a second, calls that end with their context, Close in bounded time, no goroutine left,
// bounded memory, and no harm that lasts once the attack is over. A server that lies in good
// form about what is in the tree can have anybody believe anything; of attacks that do so
// the lease and the harm are not looked at.
package hostile
