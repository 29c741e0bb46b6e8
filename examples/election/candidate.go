package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

const (
	electionPath = "/election/candidates"
	officePath   = "/election/office" // the leader writes it
)

// office is a record that the leader keeps up to date, for all to read.
type office struct {
	Leader string `json:"leader"`
	Term   int64  `json:"term"` // higher for each leader than for the one before
	Steps  int    `json:"steps"`
}

// candidate is a process that wants to be the leader.
type candidate struct {
	name string
	m    *session.Manager
	out  io.Writer
}

// run campaigns, leads, and campaigns again, until ctx ends or the candidate cannot do the work.
func (c *candidate) run(ctx context.Context) error {
	// Leader and Contenders of an Election show the id of each candidate.
	e, err := election.New(c.m, electionPath, election.WithID(c.name), election.WithTermEnd(c.termEnd))
	if err != nil {
		return err
	}
	return e.Run(ctx, c.lead) // nil if ctx is cancelled: the candidate has left the election
}

// termEnd is called after each term, when another candidate can lead. Run goes on if it returns nil.
func (c *candidate) termEnd(err error) error {
	if errors.Is(err, session.ErrLost) {
		fmt.Fprintf(c.out, "%s has lost the leadership (%v), has stopped, and campaigns again\n", c.name, err)
		return nil
	}
	fmt.Fprintf(c.out, "%s resigns\n", c.name)
	return err
}

// lead does the leader's work until its term ends. All that only the leader may do gets ctx. It ends when the
// leadership is lost, which is before another candidate can lead, also if the servers cannot be reached.
func (c *candidate) lead(ctx context.Context) error {
	term, err := election.Term(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s leads, in term %d\n", c.name, term)

	work := time.NewTicker(100 * time.Millisecond)
	defer work.Stop()
	for o := (office{Leader: c.name, Term: term}); ; o.Steps++ {
		if err := c.write(ctx, o); err != nil && ctx.Err() == nil && !replyLost(err) {
			return err // this candidate cannot do the work: let another one try
		}
		select {
		case <-work.C:
		case <-ctx.Done():
			return nil
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
func (c *candidate) write(ctx context.Context, o office) error {
	s, err := c.m.Session(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	lease, _ := queue.LeaseFrom(ctx) // ctx is that of a leader
	did, err := s.Multi(ctx, lease.Guard(), &zk.SetDataRequest{Path: officePath, Data: data, Version: -1})
	if err != nil && len(did) > 0 && did[0].Error != nil {
		<-lease.Done() // the guard has refused the write, so the lease is lost
		return lease.Err()
	}
	return err
}
