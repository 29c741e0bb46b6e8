package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Job is a job that one of many replicas runs at each tick of a schedule. All methods may be called by any
// number of goroutines at once. They panic if [New] has not made the Job. Those that take a context panic if
// it is nil.
type Job struct {
	_ misuse.NoCopy

	path     string
	name     string // of the option WithName
	mutex    *zklock.Mutex
	maxTries int // of a tick; 0: any number

	mu   sync.Mutex
	seen Record // by the last CatchUp, if it has failed
}

// The nodes below the path of a job. The lock's directory is a container, which goes away while nobody uses
// it. The record is not in it, so that it can go away: then the numbers of the lock's nodes start again.
const (
	lockName   = "/lock"
	recordName = "/last"
)

// made returns j. It panics if j is nil or a zero value.
func (j *Job) made() *Job {
	if j == nil || j.mutex == nil {
		panic("schedule: Job not made by New")
	}
	return j
}

// New returns the job at path, an absolute path of ZooKeeper. The path is a directory of the job's own, which
// replicas create when it is missing. It has the lock, which is a [zklock.Mutex] at path/lock, and the
// record, a persistent node at path/last. Names that come from users go through [zklock.EscapePath] first.
//
// New does no I/O. It returns an error that matches [session.ErrInvalid] for a nil manager, a bad path or a
// bad option.
func New(m *session.Manager, path string, opts ...Option) (*Job, error) {
	var c config
	var bad []error
	for _, o := range opts {
		if o == nil {
			bad = append(bad, fmt.Errorf("%w: nil option", session.ErrInvalid))
		} else {
			bad = append(bad, o.apply(&c))
		}
	}
	if err := errors.Join(bad...); err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	if _, err := queue.New(m, path); err != nil { // of the path as the user has given it
		return nil, fmt.Errorf("schedule: %w", errors.Unwrap(err))
	}
	mutex, err := zklock.New(m, path+lockName, c.mutex...)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", errors.Unwrap(err)) // without the name of package zklock
	}
	j := &Job{path: path, name: c.name, mutex: mutex, maxTries: c.maxTries}
	j.tell(context.Background(), session.JobInfo{}) // so that counters exist before there is anything to count
	return j, nil
}

// Path returns the path that was given to [New].
func (j *Job) Path() string { return j.made().path }

// Manager returns the session manager that was given to [New].
func (j *Job) Manager() *session.Manager { return j.made().mutex.Manager() }

// failed says in an error of this package which job it is about.
func (j *Job) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("schedule: %s: %w", j.path, err)
}
