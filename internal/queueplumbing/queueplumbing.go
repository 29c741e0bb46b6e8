// Package queueplumbing is what package queue does for zklock, rwlock, semaphore and election and for
// nobody else: it is not in the public API.
//
//	wait := queueplumbing.StartRelease(ctx, lease)
//	err := wait()
//
// This package cannot import queue, which imports it. So package queue sets the function variables
// here when it is initialized, and the types of queue are type parameters here. The functions panic
// if they get other types than those they name.
package queueplumbing

import (
	"context"
	"reflect"
)

// What package queue provides. The functions are set before any importer of queue runs.
var (
	// OfLease returns the internal methods of l, which must be a *queue.Lease.
	OfLease func(l any) Lease
	// Identity returns host/pid of this process, as in the default data of a node.
	Identity func() string
	// OfQueue returns the internal methods of q, which must be a *queue.Queue.
	OfQueue func(q any) Queue

	// StartReleases is StartRelease for several leases, a []*queue.Lease. It releases the last one
	// first. The nodes of one session are deleted by one transaction, or each by itself if that fails.
	StartReleases func(ctx context.Context, leases any) (waits []func() error)

	// InAdvance returns a context in which the locks, of any managers, are acquired together. Each session then has to
	// have room for all of their nodes (session.WithMaxNodes) before the first is created, and keeps it for them. The
	// caller calls end when the acquisition is over, before it gives up the locks if it has failed.
	InAdvance func(ctx context.Context, parts []Part) (_ context.Context, end func())

	// Together begins to acquire the first of several locks of one manager, which must be in different
	// directories. One transaction makes their nodes. The locks are granted up to the first that has to
	// wait, which keeps its place. What lies behind that is given up, which the servers have confirmed
	// when Together returns. With try the acquisitions are those of TryAcquire.
	//
	// The party can have fewer locks than there are parts, or none. Then the next lock has to be
	// acquired by itself. If Together returns an error, it has given up all of the locks.
	Together func(ctx context.Context, parts []Part, try bool) (Party, error)

	// SetConfiguration sets the configuration of a *queue.Kind. Use Configure instead.
	SetConfiguration func(kind, configuration any)

	// Deaf reports whether a node with this data belongs to a contender that is known to ignore a
	// queue.RevokeMessage.
	Deaf func(data []byte) bool
)

// Elect makes messages and hooks call a *zklock.Mutex an election, so that a leader, which holds for weeks, does not look like
// a lock that hangs. The names of its nodes say it too: see Candidate. Package zklock sets it. The mutex must not have been used.
var Elect func(mutex any)

// Candidate stands before the prefix in the names of an election's nodes, as in _c_<uuid>-elect-lock-0000000007. Other clients
// go by what stands behind it.
const Candidate = "elect-"

// Lease has the internal methods of a queue.Lease. Use the functions of this package instead.
type Lease interface {
	StartRelease(ctx context.Context) (wait func() error)
	Beside(ctx context.Context, request any) (lease any, err error)
}

// Queue has the internal methods of a queue.Queue. Use the functions of this package instead.
type Queue interface {
	Begin(ctx context.Context, request any) (acquisition any)
	// Line returns a function that follows the first contender of a kind, which is the one that holds. It returns the
	// present one, a queue.Contender, and from then on waits until there is another one. The zero value says that nobody
	// contends. One goroutine uses it.
	Line(kind any) (next func(context.Context) (contender any, err error))
	// First returns the first contender once, without a watch.
	First(ctx context.Context, kind any) (contender any, err error)
	ReadConfig(ctx context.Context) (Config, error)
	Reconfigure(ctx context.Context, pin string, keep bool, change func(old Config) ([]byte, error)) error
}

// Acquisition gets a lease in steps, for callers that want to wait on as little stack as possible: a goroutine
// keeps all the stack that it has used, but for what lies above its frames when memory is collected.
//
// Finish has the loop.
//
// One goroutine uses it. It must go on until Next returns waits as false.
type Acquisition[L any] interface {
	// Next does what is to be done. With waits as false it returns what Acquire of a queue.Queue would. With waits as
	// true it has nothing to do until Wait returns.
	Next() (lease L, waits bool, err error)
	// Wait waits for others, or until the ctx of the acquisition ends.
	Wait()
}

// Begin returns the acquisition that Acquire of q makes, a *queue.Queue. The request is a *queue.Request, which must
// not be used again, and L is *queue.Lease. Nothing is sent before the first Next.
func Begin[L any](ctx context.Context, q, request any) Acquisition[L] {
	return OfQueue(q).Begin(ctx, request).(Acquisition[L])
}

// Finish goes through all steps of an acquisition.
func Finish[L any](a Acquisition[L]) (L, error) {
	for {
		lease, waits, err := a.Next()
		if !waits {
			return lease, err
		}
		a.Wait()
	}
}

// Part is a lock that can be taken together with others.
type Part struct {
	Queue   any // *queue.Queue
	Local   any // *queue.Local, or nil for a place of its own
	Request any // queue.Request
}

// Party is the locks that Together has begun to acquire. One goroutine uses it, and calls Leave or
// Abandon in the end.
type Party interface {
	// Len returns how many leases Next has still to return.
	Len() int
	// Next returns the *queue.Lease of the next lock. It returns at once if the lock was granted with the
	// others, and otherwise waits as the ctx of Together allows.
	Next() (lease any, err error)
	// Leave gives up the locks that Next has not returned. It waits until the servers have confirmed
	// that or ctx ends, and returns what a server refuses to remove. The hooks are told why.
	Leave(ctx context.Context, why error) error
	// Abandon is Leave without the wait.
	Abandon(ctx context.Context)
}

// parts has the function of each type of lock.
var parts = make(map[reflect.Type]func(lock any) (Part, bool))

// SetPart says what a lock of type L contributes to a party. The function returns false if the lock
// has to be acquired by itself. It is for init functions.
func SetPart[L any](of func(L) (Part, bool)) {
	parts[reflect.TypeFor[L]()] = func(lock any) (Part, bool) { return of(lock.(L)) }
}

// PartOf returns what a lock contributes to a party. It returns false if the lock has to be acquired by
// itself. A type that embeds a lock of this module is not known here, since it can have its own Acquire.
func PartOf(lock any) (Part, bool) {
	of := parts[reflect.TypeOf(lock)]
	if of == nil {
		return Part{}, false
	}
	return of(lock)
}

// Config is the data of a queue's directory. A kind with a Configuration decides by it.
type Config struct {
	Data    []byte
	Changed int64 // the transaction (zxid) that set the data
	Version int32 // how often the data was set since the directory was made
}

// Configuration makes a kind of lock depend on the data of the directory. It takes the place of the
// kind's Policy. N is queue.Node, and P is queue.Policy.
type Configuration[N, P any] struct {
	// Config is what all users of a lock of this kind at one path must agree on, such as the limit of
	// a semaphore. It is the data of the directory. A contender that finds no data sets it.
	Config []byte
	// Policy returns the policy of a contender under a configuration of the directory. Its error ends
	// the acquisition, which returns it. When the data changes, waiting contenders call it again.
	Policy func(me N, config Config) (P, Tightening, error)
	// Rivals selects, from the names in the directory, the directories in which contenders of another
	// kind of lock contend for the same thing. A contender in one of them is a conflict. If Rivals is
	// nil, there are none.
	Rivals func(names []string) []string
}

// Tightening says what a contender has to know of the time before its lock was made stricter, as by a
// lower limit. It is zero if the lock never was.
type Tightening struct {
	// Tightened, if not 0, is the transaction (zxid) that made the lock stricter than it was
	// before: it replaced a configuration by which more contenders could go. A contender with
	// an older node may have gone by that configuration.
	Tightened int64
	// Former is the most slack that the contender had before Tightened.
	Former int
	// Lowered, if not 0, is the last transaction that made the lock stricter. The lock may have
	// become less strict again since, but a contender whose server lags behind may not know. So
	// the policy's Replaces counts for nodes that are older than Lowered, and not for younger ones.
	Lowered int64
}

// Configure gives a *queue.Kind a configuration, which must be a Configuration[queue.Node, queue.Policy].
// It must be called before the kind is used.
func Configure[N, P any](kind any, c Configuration[N, P]) { SetConfiguration(kind, &c) }

// StartRelease is Release of a *queue.Lease without the wait for the server, so that several leases
// can be released right after each other. The caller must call the returned function once. It
// waits until ctx ends at most, and returns what Release would.
func StartRelease(ctx context.Context, l any) (wait func() error) {
	return OfLease(l).StartRelease(ctx)
}

// Beside takes another lease of the same queue next to l: at once, in the same session, with the
// same sequence number. Then both are held, and each is released on its own. The new lease has the
// Token of l, whose place it shares. L must be queue.Lease, and R queue.Request.
//
// It is for kinds whose Policy says, by Replaces, that one node may leave another in its place: a
// writer that becomes a reader, with no other contender in between. If l is of a queue.Local, its
// turn ends: the lock is not handed over after it.
//
// Beside fails with ctx's error. If l has ended, or ends in the meantime, it fails with the cause
// (session.ErrLost, queue.ErrReleased). It fails with session.ErrInvalid if the policy of l does not
// say by Replaces that its node may leave another in its place, or if the two kinds have different
// prefixes. Otherwise it fails as Acquire of a queue.Queue does.
func Beside[L, R any](ctx context.Context, l *L, request R) (*L, error) {
	beside, err := OfLease(l).Beside(ctx, request)
	if err != nil {
		return nil, err
	}
	return beside.(*L), nil
}

// ReadConfig returns the configuration of the directory of q, a *queue.Queue. If there is no directory,
// it returns the zero value. It fails with ctx's error, session.ErrClosed or what the server refuses.
func ReadConfig(ctx context.Context, q any) (Config, error) { return OfQueue(q).ReadConfig(ctx) }

// Reconfigure replaces the data of the directory of q, a *queue.Queue, by what change returns for the
// old data. It makes the directory if there is none. Waiting contenders of a kind with a Configuration
// look again. change may be called several times.
//
// In the same transaction it creates or deletes a persistent child named pin. With keep the child is
// there, and the directory stays although nobody contends. Without keep it is not.
//
// Reconfigure fails with the error of change, ctx's error, session.ErrClosed or what the server
// refuses, and with session.ErrInvalid if pin is the name of a contender.
func Reconfigure(ctx context.Context, q any, pin string, keep bool, change func(old Config) ([]byte, error)) error {
	return OfQueue(q).Reconfigure(ctx, pin, keep, change)
}
