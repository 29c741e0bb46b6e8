package main

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/saslserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	user, password = "shop", "secret"
	closedNode     = "/closed" // to all but the user
)

var login = session.WithSASL(session.DigestMD5(user, password))

// newServer starts a server that knows the user, and serves others too.
func newServer() (*zktest.Ensemble, error) {
	return saslserver.New(user, password, zktest.TickTime(serverTick), zktest.ContainerCheck(containerTick))
}

// logsIn makes closedNode, and makes the client one that reads it.
func (c *client) logsIn() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.user = true
	s, err := c.m.Session(ctx)
	if err == nil {
		_, err = s.Multi(ctx, &zk.CreateRequest{Path: closedNode, Acl: []zk.ACL{{Perms: zk.PermAll, Scheme: "sasl", ID: user}}})
	}
	return err
}

// readClosed reads what only the user may read. It fails if a connection of the session has not proved who it is.
func (w *worker) readClosed(ctx context.Context) error {
	s, err := w.c.m.Session(ctx)
	if err == nil {
		_, _, err = s.Get(ctx, closedNode)
	}
	return err
}
