// Package faultmatrix tries every fault at every step of every lock, against real servers.
//
// The steps are recorded. Each lock is taken once behind another holder, waited for, held and
// given back through a proxy, which notes the requests and the events of watches. Then the same
// is done again for each of these steps and each fault. The fault strikes at the step and
// heals, and the test compares what the library reported with what the servers have.
//
//	go test ./internal/tests/proofs/faultmatrix -run 'TestMatrix/mutex/cut-after/create-own'
//
// runs one cell of the matrix. The package has only tests.
package faultmatrix
