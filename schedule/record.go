package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ErrRecord is returned when the record of a job cannot be understood: it is not JSON as this package writes it,
// or a later version of this package has written it. Nothing is run then. Delete the node path/last to
// start again: the next tick that is given to Run is open, whichever it is.
var ErrRecord = errors.New("the record of the job cannot be understood")

// Record is what the servers know of a job: the latest tick that was begun.
type Record struct {
	Tick  time.Time `json:"tick"`  // in UTC; the zero time if no tick was begun
	Tries int       `json:"tries"` // how often its job was begun
	Done  bool      `json:"done"`  // the last of them returned nil
	By    string    `json:"by"`    // the process that began or ended the last one: host/pid
	At    time.Time `json:"-"`     // when it did, by the clock of the servers
}

// version is that of the record's form. A reader refuses a record of a later one.
const version = 1

type versioned struct {
	Version int `json:"version"`
	Record
}

// begin returns the record of another try of a tick.
func (r Record) begin(tick time.Time) Record {
	tries := 1
	if tick.Equal(r.Tick) {
		tries += r.Tries
	}
	return Record{Tick: tick.UTC(), Tries: tries, By: nodedata.Identity()}
}

func (r Record) encode() []byte {
	b, err := json.Marshal(versioned{version, r})
	if err != nil {
		panic(err) // Run has checked the year, which is all that can fail
	}
	return b
}

// decode returns what a record says. An empty one is that of a job that has not begun.
func decode(data []byte, stat *zk.Stat) (Record, error) {
	if len(data) == 0 {
		return Record{}, nil
	}
	var v versioned
	switch err := json.Unmarshal(data, &v); {
	case err != nil:
		return Record{}, fmt.Errorf("%w: %w", ErrRecord, err)
	case v.Version > version:
		return Record{}, fmt.Errorf("%w: it has version %d, and this program knows %d", ErrRecord, v.Version, version)
	case v.Version < 1 || v.Tick.IsZero() || v.Tries < 1:
		return Record{}, fmt.Errorf("%w: %.100q", ErrRecord, data)
	}
	v.At = time.UnixMilli(stat.Mtime)
	return v.Record, nil
}

// Last returns the record: the latest tick that was begun, and whether its job is done. The Tick of the Record is the zero time
// if no tick was begun. A replica that was down for long can run the ticks after it, one by one.
//
// Last makes one read, of the server that this process is connected to, which can be a moment behind. It takes no
// lock, and writes nothing. It fails when ctx ends, with an error that matches ctx.Err(), with
// [ErrRecord], [session.ErrClosed], or what the servers refuse.
func (j *Job) Last(ctx context.Context) (Record, error) {
	j.made()
	misuse.Context(ctx, "schedule: Job.Last")
	last, err := j.get(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		return Record{}, nil
	}
	return last, j.failed(err)
}

func (j *Job) recordPath() string { return j.path + recordName }

// get reads the record.
func (j *Job) get(ctx context.Context) (last Record, err error) {
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
func (j *Job) watch(ctx context.Context) (last Record, changed <-chan struct{}, err error) {
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

// record reads the record, and makes its node if it is not there. So all that follows can rely on the node: the watch, which
// servers set on nodes that exist, and the writes.
func (j *Job) record(ctx context.Context) (Record, error) {
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

// makeRecord makes the node of the record. The caller has to look whether it is there now: the reply can be lost, and the
// directory can go away again before the node is in it.
func (j *Job) makeRecord(ctx context.Context) error {
	err := j.inSession(ctx, func(s *session.Session) error {
		if err := (*core.Session)(s).MakeParents(ctx, j.path); err != nil {
			return err
		}
		_, err := s.Create(ctx, j.recordPath(), nil, session.Persistent)
		return err
	})
	if errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrConnectionClosed) {
		return nil
	}
	return err
}

// finish writes that the job is done. It is done even if the caller has gone, so only the end of the lease ends finish.
func (j *Job) finish(ctx context.Context, done Record) error {
	lease, ok := queue.LeaseFrom(ctx)
	if !ok {
		return errNoLease
	}
	lasting, cancel := lease.Context(context.WithoutCancel(ctx))
	defer cancel()
	done.Done = true
	return j.write(lasting, done)
}

var errNoLease = errors.New("the context of the job has no lease")

// write writes the record in one transaction with the guard of the lease that ctx belongs to: a replica that has lost the lock
// writes nothing, even if it does not know that yet. The record does not change otherwise while the lock is held. So a write
// whose reply was lost can be repeated.
func (j *Job) write(ctx context.Context, r Record) error {
	lease, ok := queue.LeaseFrom(ctx)
	if !ok {
		return errNoLease
	}
	set := &zk.SetDataRequest{Path: j.recordPath(), Data: r.encode(), Version: -1}
	var pace rounds.Pace
	for {
		s, err := j.Manager().Session(ctx)
		if err != nil {
			return err
		}
		results, err := s.Multi(ctx, lease.Guard(), set)
		switch {
		case errors.Is(err, zk.ErrNoNode) && len(results) > 0 && errors.Is(results[0].Error, zk.ErrNoNode):
			return fmt.Errorf("the node of the lock is gone: %w", session.ErrLost)
		case !errors.Is(err, zk.ErrConnectionClosed):
			return err
		}
		if err := pace.Wait(ctx, nil); err != nil {
			return err
		}
	}
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
