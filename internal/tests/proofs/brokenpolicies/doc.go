// Package brokenpolicies has no code of its own. Its tests have every function of a queue.Policy panic or end its goroutine, at
// every call, in locks of a kind of one's own. The caller recovers the panic, as net/http does. The lock must be free for
// others afterwards, and hooks are told of the end of everything that they were told of.
package brokenpolicies
