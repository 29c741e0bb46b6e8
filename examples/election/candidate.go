package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

const (
	lockPath   = "/election/lock"   // its holder is the leader
	officePath = "/election/office" // the leader writes it
)

// office is a record that the leader keeps up to date, for all to read.
type office struct {
	Leader string `json:"leader"`
	Term   int64  `json:"term"` // the fencing token: higher for each leader than for the one before
	Steps  int    `json:"steps"`
}

// candidate is a process that wants to be the leader.
type candidate struct {
	name string
	m    *session.Manager
	out  io.Writer
}

// run stands for election until ctx ends. A candidate that has lost the leadership stands
// again, behind all others. When ctx ends it resigns.
func (c *candidate) run(ctx context.Context) error {
	// Mutex.Contenders shows the data of each node, and so the names of leader and waiters.
	lock, err := zklock.New(c.m, lockPath, zklock.WithData([]byte(c.name)))
	if err != nil {
		return err
	}
	for {
		lease, err := lock.Acquire(ctx)
		switch {
		case ctx.Err() != nil && lease == nil:
			return nil // the library removes its place in the queue
		case err != nil:
			return err
		}
		err = c.lead(ctx, lease)
		if errors.Is(err, session.ErrLost) {
			fmt.Fprintf(c.out, "%s has lost the leadership (%v), has stopped, and stands again\n", c.name, err)
			continue
		}
		fmt.Fprintf(c.out, "%s resigns\n", c.name)
		resign(ctx, lease)
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
}

// resign gives the leadership up, so that the next candidate need not wait until our session
// has timed out.
func resign(ctx context.Context, lease *queue.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// An error needs no action: either the leadership was lost meanwhile, or the library goes
	// on with the release by itself.
	_ = lease.Release(ctx)
}

// lead does the leader's work until ctx or the leadership ends. It never returns nil: the
// error matches session.ErrLost if the leadership has ended.
func (c *candidate) lead(ctx context.Context, lease *queue.Lease) error {
	// All that only the leader may do gets this context. It ends when the leadership is lost,
	// which is before another candidate can lead, also if the servers cannot be reached.
	term, cancel := lease.Context(ctx)
	defer cancel()
	token, err := lease.Token(term)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s leads, in term %d\n", c.name, token)

	work := time.NewTicker(100 * time.Millisecond)
	defer work.Stop()
	for o := (office{Leader: c.name, Term: token}); ; o.Steps++ {
		if err := c.write(term, lease, o); err != nil && term.Err() == nil && !replyLost(err) {
			return err // this candidate cannot do the work: let another one try
		}
		select {
		case <-work.C:
		case <-term.Done():
			return context.Cause(term)
		}
	}
}

// replyLost reports whether a write failed because the connection or the session was lost. The
// server may have carried it out.
func replyLost(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, session.ErrLost)
}

// write writes the office. The guard and the write are one transaction, so a former leader
// that has not yet noticed its loss changes nothing.
func (c *candidate) write(ctx context.Context, lease *queue.Lease, o office) error {
	s, err := c.m.Session(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	did, err := s.Multi(ctx, lease.Guard(), &zk.SetDataRequest{Path: officePath, Data: data, Version: -1})
	if err != nil && len(did) > 0 && did[0].Error != nil {
		<-lease.Done() // the guard has refused the write, so the lease is lost
		return lease.Err()
	}
	return err
}
