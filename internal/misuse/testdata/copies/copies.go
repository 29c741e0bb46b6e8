// Package copies copies each type that must not be copied, for go vet to report. Each line that ends with
// a comma has one copy.
package copies

import (
	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

func _(
	session.Manager,
	session.Session,
	session.Watch,
	queue.Queue,
	queue.Lease,
	queue.Turn,
	queue.Releasing,
	zklock.Mutex,
	zklock.MultiLock,
	zklock.MultiLease,
	rwlock.RWMutex,
	semaphore.Semaphore,
	election.Election,
	zktest.Server,
	zktest.Proxy,
	zktest.Ensemble,
	zktest.Fault,
) {
}

// What may be copied.
func _(rwlock.Reader, session.Trace, queue.Request) {}
