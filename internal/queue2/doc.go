// Package queue makes distributed locks on ZooKeeper. Packages zklock, rwlock and semaphore are built on it. Use it directly
// to make a kind of lock that they do not have.
//
//	contend.go  the life of a contender: enter, decide, watch and wait, and again; then a turn, or nothing
//	decide.go   what a listing says (pure)
//	look.go     what the watches say (pure)
//	turn.go     a node that was granted, until it is left or lost; own.go: the watch on it, the token, requests to leave
//	lease.go    one hold of a turn; release.go: the wait for the answer
//	acquire.go  one contender after another, until one is granted; the hooks and the errors of that
package queue
