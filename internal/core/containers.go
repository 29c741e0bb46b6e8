package core

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/internal/logbook"
)

// containers is what a manager knows of its servers' container nodes. ZooKeeper before 3.5.1 has none, and
// neither have some other servers and proxies. Such a server hangs up on a client that asks for one, and some
// say nothing before they do. So a manager that has not seen a container yet asks for one at a time: the
// others would all be lost with the connection, and each be the end of another one. Once it knows that
// there are no containers, it makes persistent nodes instead.
type containers struct {
	asking chan struct{} // full while one create goes alone

	mu      sync.Mutex
	known   knowledge
	hangUps int // one after the other, on creates that went alone
}

// knowledge is whether the servers have container nodes.
type knowledge int

const (
	unknown knowledge = iota
	present
	absent
)

// hangUpsAssumed is after how many hang-ups without an answer there are taken to be no containers. One or two can be
// servers that restart. Before each of them, the session looks whether it has a connection that answers.
const hangUpsAssumed = 3

func newContainers() *containers { return &containers{asking: make(chan struct{}, 1)} }

// mode returns the mode in which to create a directory. If that is Container, the caller must hand the
// outcome to concluded, with alone. mode waits for the create that goes alone, if there is one.
func (c *containers) mode(ctx, life context.Context) (m CreateMode, alone bool, err error) {
	if c.knows() == unknown {
		select {
		case c.asking <- struct{}{}:
			alone = true
		case <-ctx.Done():
			return m, false, ctx.Err()
		case <-life.Done():
			return m, false, context.Cause(life)
		}
	}
	known := c.knows()
	if alone && known != unknown {
		<-c.asking
		alone = false
	}
	if known == absent {
		return Persistent, false, nil
	}
	return Container, alone, nil
}

func (c *containers) knows() knowledge {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// errHangUps is why there are taken to be no containers.
var errHangUps = fmt.Errorf("the server hung up on the creates of container nodes, %d times", hangUpsAssumed)

// concluded takes the outcome of a create of a container. It returns why there are no containers, to the
// first caller that finds that out.
func (c *containers) concluded(o outcome, alone bool) (why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if alone {
		<-c.asking
	}
	switch {
	case c.known == absent:
	case o == outcomeUnimplemented:
		why = ErrUnimplemented
	case o == outcomeAnswer:
		c.known, c.hangUps = present, 0
	case o == outcomeHangUp:
		// Whatever was in flight is lost with one connection, so only a create that went alone counts.
		c.known = unknown
		if alone {
			c.hangUps++
		}
		if c.hangUps == hangUpsAssumed {
			why = errHangUps
		}
	}
	if why != nil {
		c.known = absent
	}
	return why
}

// outcome is what became of the create of a container.
type outcome int

const (
	outcomeNone          outcome = iota // it says nothing about containers
	outcomeAnswer                       // the server knows the request
	outcomeUnimplemented                // the server says that it does not
	outcomeHangUp                       // the server closed the connection
)

// outcomeOf returns what an error says about containers. broken is why the connection ended, if it did.
func outcomeOf(err, broken error) outcome {
	switch kind := classify(err); {
	case errors.Is(err, ErrUnimplemented):
		return outcomeUnimplemented
	case kind == answered:
		return outcomeAnswer
	case kind != refused && logbook.HungUp(broken):
		return outcomeHangUp
	}
	return outcomeNone
}
