package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ErrRecord is returned when the record of a job cannot be understood: it is not JSON as this package writes
// it, it has a count that cannot be, or a later version of this package has written it. Nothing is run then.
// Delete the node path/last to start again: the next tick that is given to Run is open, whichever it is.
var ErrRecord = errors.New("the record of the job cannot be understood")

// Record is what the servers know of a job: the latest tick that was begun.
type Record struct {
	Tick  time.Time `json:"tick"`  // in UTC; the zero time if no tick was begun
	Tries int       `json:"tries"` // how often its job was begun
	Done  bool      `json:"done"`  // the last of them returned nil
	By    string    `json:"by"`    // the process that began or ended the last one: host/pid
	At    time.Time `json:"-"`     // when it did, by the clock of the servers

	// Completed is how many ticks were done since the record was made. So CatchUp knows whether ticks were left out.
	Completed int `json:"completed"`
}

// mostCount is the highest count of a record, and the highest of [WithMaxTries]. A count that gets there stays
// there: with a higher one, nobody could read the record any more.
const mostCount = 1e9

// form is the version of the record's form. A reader refuses a record of a later one.
const form = 1

// entry is a record as it is in its node.
type entry struct {
	Form int `json:"version"`
	Record
	Node string `json:"node"` // of the lease under which it was written: what tells a try from others

	version int32 // of the node's data
}

// begin returns the entry of another try of a tick, under a lease.
func (e entry) begin(tick time.Time, lease *queue.Lease) entry {
	tries := 1
	if tick.Equal(e.Tick) {
		tries = min(e.Tries+1, mostCount)
	}
	r := Record{Tick: tick.UTC(), Tries: tries, By: queue.Identity(), Completed: e.Completed}
	return entry{Form: form, Record: r, Node: path.Base(lease.Path())}
}

func (e entry) encode() []byte {
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // Run has checked the year, which is all that can fail
	}
	return b
}

// decode returns what the data of a record says. No data is that of a job that has not begun.
func decode(data []byte, stat *zk.Stat) (e entry, err error) {
	if len(data) == 0 {
		return entry{version: stat.Version}, nil
	}
	switch err := json.Unmarshal(data, &e); {
	case err != nil:
		return entry{}, fmt.Errorf("%w: %w", ErrRecord, err)
	case e.Form > form:
		return entry{}, fmt.Errorf("%w: it has version %d, and this program knows %d", ErrRecord, e.Form, form)
	case e.Form < 1 || e.Tick.IsZero() || e.Tries < 1 || e.Tries > mostCount || e.Completed < 0 || e.Completed > mostCount:
		return entry{}, fmt.Errorf("%w: %.100q", ErrRecord, data)
	}
	e.At, e.version = time.UnixMilli(stat.Mtime), stat.Version
	return e, nil
}

// Last returns the record: the latest tick that was begun, and whether its job is done. The Tick of the
// Record is the zero time if no tick was begun. [Job.CatchUp] runs the ticks after it.
//
// Last makes one read, of the server that this process is connected to, which can be a moment behind. It
// takes no lock, and writes nothing. It fails when ctx ends, with an error that matches ctx.Err(), with
// [ErrRecord], [session.ErrClosed], or what the servers refuse.
func (j *Job) Last(ctx context.Context) (Record, error) {
	j.made()
	misuse.Context(ctx, "schedule: Job.Last")
	ctx, end := queue.BeginWait(ctx)
	last, err := j.get(ctx)
	if err = end(err); errors.Is(err, zk.ErrNoNode) {
		return Record{}, nil
	}
	return last.Record, j.failed(err)
}

func (j *Job) recordPath() string { return j.path + recordName }

// get reads the record.
func (j *Job) get(ctx context.Context) (last entry, err error) {
	err = j.inSession(ctx, func(s *session.Session) error {
		data, stat, err := s.Get(ctx, j.recordPath())
		if err == nil {
			last, err = decode(data, stat)
		}
		return err
	})
	return last, err
}

// watch reads the record. changed is closed when that may be out of date.
func (j *Job) watch(ctx context.Context) (last entry, changed <-chan struct{}, err error) {
	err = j.inSession(ctx, func(s *session.Session) error {
		data, stat, w, err := s.Watch(ctx, j.recordPath())
		if err == nil {
			changed = w.Done()
			last, err = decode(data, stat)
		}
		return err
	})
	return last, changed, err
}

// record reads the record, and makes its node if it is not there. So all that follows can rely on the node:
// the watch, which servers set on nodes that exist, and the writes.
func (j *Job) record(ctx context.Context) (entry, error) {
	var pace rounds.Pace
	for {
		last, err := j.get(ctx)
		if !errors.Is(err, zk.ErrNoNode) {
			return last, err
		}
		if err := j.makeRecord(ctx); err != nil {
			return last, err
		}
		if err := pace.Wait(ctx, nil); err != nil {
			return last, err
		}
	}
}

// makeRecord makes the node of the record. The caller has to look whether it is there now: the reply can be lost.
func (j *Job) makeRecord(ctx context.Context) error {
	err := j.inSession(ctx, func(s *session.Session) error {
		_, err := s.Create(ctx, j.recordPath(), nil, session.Persistent)
		return err
	})
	if errors.Is(err, zk.ErrNodeExists) || replyLost(ctx, err) {
		return nil
	}
	return err
}

// begin writes that a try of a tick begins, and returns Ran. pick says which tick by the record. If it says what has become
// of the tick instead, begin returns that.
//
// What it reads can be old, even under the lock: a server that is behind answers if the connection was lost
// since the grant. So the write is for the version that was read. If its reply is lost, the record says by
// the name of the lease's node whether the write was carried out.
func (j *Job) begin(
	ctx context.Context, wait patience, lease *queue.Lease, pick func(Record) (time.Time, Outcome, error),
) (begun entry, outcome Outcome, err error) {
	ctx, end := queue.BeginWait(wait.left(ctx))
	defer func() { err = end(err) }()
	var pace rounds.Pace
	for doubt := false; ; {
		last, err := j.record(ctx)
		if err != nil {
			return last, NotRun, err
		}
		if doubt && last.Node == begun.Node && last.Tick.Equal(begun.Tick) {
			return last, Ran, nil
		}
		tick, over, err := pick(last.Record)
		if over != NotRun || err != nil {
			return last, over, err
		}
		begun = last.begin(tick, lease)
		switch err := j.write(ctx, lease, begun, last.version); {
		case err == nil:
			return begun, Ran, nil
		case replyLost(ctx, err):
			doubt = true
		case errors.Is(err, session.ErrUncertain) && ctx.Err() != nil:
			return last, NotRun, fmt.Errorf("%w: %w", ctx.Err(), err)
		case !errors.Is(err, zk.ErrBadVersion):
			return last, NotRun, err
		}
		if err := pace.Wait(ctx, nil); err != nil {
			return last, NotRun, err
		}
	}
}

// finish writes that the try is done. It does so even if the caller has gone: only the end of the lease ends
// it. Nobody else writes while the lease's node is there, so the write can be repeated if its reply is lost.
func (j *Job) finish(ctx context.Context, lease *queue.Lease, done entry) error {
	ctx, cancel := lease.Context(context.WithoutCancel(ctx))
	defer cancel()
	done.Done, done.Completed = true, min(done.Completed+1, mostCount)
	var pace rounds.Pace
	for {
		if err := j.write(ctx, lease, done, -1); !replyLost(ctx, err) {
			return err
		}
		if err := pace.Wait(ctx, nil); err != nil {
			return err
		}
	}
}

// write writes the record in one transaction with the guard of the lease: a replica that has lost the lock
// writes nothing, even if it does not know that yet.
func (j *Job) write(ctx context.Context, lease *queue.Lease, e entry, version int32) error {
	s, err := j.Manager().Session(ctx)
	if err != nil {
		return err
	}
	set := &zk.SetDataRequest{Path: j.recordPath(), Data: e.encode(), Version: version}
	results, err := s.Multi(ctx, lease.Guard(), set)
	if errors.Is(err, zk.ErrNoNode) && len(results) > 0 && errors.Is(results[0].Error, zk.ErrNoNode) {
		return errNodeGone
	}
	return err
}

var errNodeGone = fmt.Errorf("the node of the lock is gone: %w", session.ErrLost)

// replyLost reports whether a write may have been carried out, while its session and its caller are there to look.
func replyLost(ctx context.Context, err error) bool {
	ended := errors.Is(err, session.ErrLost) || errors.Is(err, session.ErrClosed) || ctx.Err() != nil
	return errors.Is(err, session.ErrUncertain) && !ended
}

// inSession calls f with the live session, and once more if that is lost.
func (j *Job) inSession(ctx context.Context, f func(*session.Session) error) error {
	for {
		s, err := j.Manager().Session(ctx)
		if err != nil {
			return err
		}
		if err = f(s); !errors.Is(err, session.ErrLost) || ctx.Err() != nil {
			return err
		}
	}
}
