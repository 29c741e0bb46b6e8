package faultmatrix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// opener returns the connect string of a cell's manager, and the options that it has besides. It may prepare the
// server.
type opener func(c *cell) (servers string, opts []session.Option, err error)

// open opens our session. No server answers before the fault is armed.
func (c *cell) open(timeout time.Duration) (*session.Manager, error) {
	servers, opts, err := c.subject.opens(c)
	if err != nil {
		return nil, err
	}
	c.proxy.Blackhole(zktest.Both)
	return session.Open(servers, append(options(timeout), opts...)...)
}

// reconnects takes the lock. While it is held, and the rival waits, the connection is cut once.
func reconnects(ctx context.Context, c *cell) (hold, error) {
	h, err := mutex(whenWaiting(ctx, &c.waiting), c.ours, c.base)
	if err != nil {
		return nil, err
	}
	c.logf("we are in")
	return reconnecting{h, c}, c.referee.enter(ctx, "we", h)
}

// reconnecting is a hold whose connection is cut once.
type reconnecting struct {
	hold
	c *cell
}

func (r reconnecting) settle(ctx context.Context) error {
	if err := r.hold.settle(ctx); err != nil {
		return err
	}
	r.c.proxy.Disconnect()
	return r.c.connected(ctx)
}

// The servers know this user. The helper clients of all rows log in as it, and the client under test in the row sasl alone.
const user, password = "shop", "secret"

var asShop = session.WithSASL(session.DigestMD5(user, password))

// loggedIn has us log in, and makes a directory that only the user may write to.
func loggedIn(c *cell) (string, []session.Option, error) {
	_, err := c.site.admin.Create(c.base, nil, 0,
		append(zk.WorldACL(zk.PermRead), zk.ACL{Perms: zk.PermAll, Scheme: "sasl", ID: user}))
	return c.proxy.Addr(), []session.Option{asShop}, err
}

// resolved has us ask a resolver, which gets the number of the call.
func resolved(resolve func(ctx context.Context, n int64) ([]string, error), opts ...session.Option) (string, []session.Option, error) {
	var calls atomic.Int64
	ask := session.WithResolver(func(ctx context.Context) ([]string, error) {
		return resolve(ctx, calls.Add(1))
	})
	return "", append(opts, ask), nil
}

// failing answers at the second call only.
func failing(c *cell) (string, []session.Option, error) {
	return resolved(func(_ context.Context, n int64) ([]string, error) {
		if n != 2 {
			return nil, errors.New("the resolver is down")
		}
		return []string{c.proxy.Addr()}, nil
	})
}

// hanging answers at the first call only. A later one takes for as long as it may, in which our session would be lost.
func hanging(c *cell) (string, []session.Option, error) {
	return resolved(func(ctx context.Context, n int64) ([]string, error) {
		if n > 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []string{c.proxy.Addr()}, nil
	})
}

// moving answers with another server each time that we have connected. The last one is gone then.
func moving(c *cell) (string, []session.Option, error) {
	var servers atomic.Int64
	present := func() string { return fmt.Sprintf("server%d:2181", servers.Load()) }
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if at := present(); addr != at {
			return nil, fmt.Errorf("%s is gone, and %s is there", addr, at)
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, c.proxy.Addr())
		if err == nil {
			servers.Add(1)
		}
		return conn, err
	}
	return resolved(func(context.Context, int64) ([]string, error) {
		return []string{present()}, nil
	}, session.WithDialer(dial))
}
