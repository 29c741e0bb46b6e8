// Package brokenhooks has no code of its own. Its tests have every hook of session.Trace, and every
// function of a queue.Policy, panic or end its goroutine at every call, in every type of lock.
// With a hook, everything goes on as without it. The panic of a policy is recovered, as net/http does, and the
// lock must be free for others afterwards.
package brokenhooks
