// Package faults tries every fault at every step of every lock, against real servers.
//
// The steps are not written down: each lock is taken once behind somebody who has it, waited
// for, held and given back through a proxy that notes the requests (and the events of watches).
// Then the same is done again for each of these and for each fault, which strikes at that
// request and heals, and what the library has said is compared with what the servers have.
//
//	go test ./internal/faults -run 'TestMatrix/mutex/cut-after/create-own'
//
// runs one cell of the matrix. All of it is tests.
package faults
