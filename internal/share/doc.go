// Package share is what goroutines of one process share of a lock. Packages zklock, rwlock and semaphore are made of
// it.
//
//	lock.go    what every lock object has, its options, and the door by which Multi finds it
//	holds.go   the holds of one lock object: slot, owners; unlock.go: Unlock without a handle, Do
//	locker.go  a sync.Locker
//	errors.go  the error of a Do, and several errors as one
//	turns.go   the turns that goroutines of one object share
//	turn.go    what follows a release: the turn is handed over, kept or left
//	kept.go    how many turns are kept, and whether it is worth while
//	keys.go    a lock object for each key in use; names of keys in paths
package share
