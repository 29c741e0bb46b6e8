package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	user, password = "shop", "secret"
	closedNode     = "/closed" // to all but the user
	jaas           = `Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_` + user + `="` + password + `"; };`
)

var login = session.WithSASL(session.DigestMD5(user, password))

// newServer starts a server that knows the user, and serves others too.
func newServer() (_ *zktest.Ensemble, err error) {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }() // the server reads it when it starts
	file := filepath.Join(dir, "jaas.conf")
	if err := os.WriteFile(file, []byte(jaas), 0o600); err != nil {
		return nil, err
	}
	return zktest.NewReal(zktest.TickTime(serverTick), zktest.ContainerCheck(containerTick),
		zktest.Property("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
		zktest.Environ("JAVA_TOOL_OPTIONS", "-Djava.security.auth.login.config="+file))
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
