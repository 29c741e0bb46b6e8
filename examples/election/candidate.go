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
	lockPath   = "/election/lock"   // who holds it leads
	officePath = "/election/office" // what leaders write
)

// office is what the leader keeps up to date, for everybody to read.
type office struct {
	Leader string `json:"leader"`
	Term   int64  `json:"term"` // the fencing token: higher for each leader than for the one before
	Steps  int    `json:"steps"`
}

// candidate is one who would lead.
type candidate struct {
	name string
	m    *session.Manager
	out  io.Writer
}

// run stands for election until ctx ends. Who has lost the leadership stands again, behind
// all others; who resigns, because ctx has ended, does not.
func (c *candidate) run(ctx context.Context) error {
	// The node's data tells others who waits and who leads (Mutex.Contenders).
	lock, err := zklock.New(c.m, lockPath, zklock.WithData([]byte(c.name)))
	if err != nil {
		return err
	}
	for {
		lease, err := lock.Acquire(ctx)
		switch {
		case ctx.Err() != nil && lease == nil:
			return nil // its place in the queue goes away by itself
		case err != nil:
			return err
		}
		err = c.lead(ctx, lease)
		if errors.Is(err, session.ErrLost) {
			fmt.Fprintf(c.out, "%s has stopped, leads no more (%v), and stands again\n", c.name, err)
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

// resign lets the next one in, who otherwise waits until our session has timed out.
func resign(ctx context.Context, lease *queue.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// Of an error there is nothing to make: the leadership was lost meanwhile, or the release
	// is certain and goes on by itself.
	_ = lease.Release(ctx)
}

// lead does the leader's work until ctx ends or the leadership does, and says which: it
// never returns nil.
func (c *candidate) lead(ctx context.Context, lease *queue.Lease) error {
	// Everything that only the leader may do gets this context. It ends when the leadership
	// is lost: before the servers let anybody else in, even if they cannot be reached.
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
			return err // not fit to lead: let another one try
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

// write writes as the leader. The guard goes with the write to the server, in one
// transaction: a leader that has been overtaken, and is too late to notice, changes nothing.
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
		<-lease.Done() // the guard has refused, and we are about to hear why
		return lease.Err()
	}
	return err
}
