package size

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
)

type nothing struct{}

func (nothing) Printf(string, ...any) {}

// rival is a plain zk.Conn.
func rival(t *testing.T, addr string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect([]string{addr}, 20*time.Second, zk.WithLogger(nothing{}))
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// The list of a directory has 17 MB. It is read, and a lock there works, with the connection that it had.
func TestLongDirectory(t *testing.T) {
	longtest.Only(t)
	e := server(t)
	c := rival(t, e.Addr(0))
	_, err := c.Create("/big", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	const children = 19_500
	for i := 0; i < children; i += 500 {
		var ops []any
		for j := i; j < min(children, i+500); j++ {
			ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("/big/%0906d", j), Acl: zk.WorldACL(zk.PermAll)})
		}
		_, err := c.Multi(ops...)
		must(t, err)
	}
	u := newUser(t, e.ConnectString(), session.WithTimeout(20*time.Second))
	u.during("list of 17 MB", func(ctx context.Context) {
		names, _, err := u.s.Children(ctx, "/big")
		if err != nil || len(names) != children {
			t.Errorf("%d names, %v", len(names), err)
		}
	})
	u.during("lock in a directory of 17 MB", func(ctx context.Context) { must(t, take(ctx, u.Manager, "/big")) })
	if n := u.suspended.Load(); n > 0 {
		t.Errorf("the connection was lost %d times", n)
	}
}
