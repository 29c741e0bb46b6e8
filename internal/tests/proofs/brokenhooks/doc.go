// Package brokenhooks has no code of its own. Its tests have every hook of session.Trace, and every
// function of a queue.Policy, panic or end its goroutine at every call, in every type of lock.
// Where the panic is recovered, as net/http does, the lock must be free for others afterwards.
package brokenhooks
