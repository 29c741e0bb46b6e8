package locks

import (
	"context"
	"crypto/rand"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// Clock is the present time of the servers, by which all ages are counted: their clock has stamped the nodes.
type Clock struct {
	Time time.Time
	Skew time.Duration // how far it is ahead of the clock here
}

// Now asks the servers for their time. They tell it only with a node that was made. So Now makes a node, writes to it and deletes
// it, in one transaction, which leaves nothing: below the root, or if that is refused, below a directory above the lock, where
// no contenders are. If all refuse, the clock is the one here.
func (t *Tree) Now(ctx context.Context, lock string) Clock {
	for dir := "/"; ; dir = path.Dir(lock) {
		node := path.Join(dir, "turnstile-clock-"+rand.Text())
		var replies []zk.MultiResponse
		begun := time.Now()
		err := t.do(ctx, "the time", func(ctx context.Context, s *session.Session) (err error) {
			begun = time.Now()
			replies, err = s.Multi(ctx, &zk.CreateRequest{Path: node}, &zk.SetDataRequest{Path: node, Version: 0},
				&zk.DeleteRequest{Path: node, Version: 1})
			return err
		})
		if now := time.Now(); err == nil && len(replies) > 1 && replies[1].Stat != nil {
			// The leader's clock was read somewhere between the request and the answer.
			stamp := time.UnixMilli(replies[1].Stat.Mtime).Add(now.Sub(begun) / 2)
			return Clock{stamp, stamp.Sub(now)}
		}
		if dir != "/" || path.Dir(lock) == "/" || ctx.Err() != nil {
			return Clock{Time: time.Now()}
		}
	}
}

// Note names the difference of the clocks, if it is one that people would wonder at. Otherwise it is empty.
func (c Clock) Note() string {
	const most = 2 * time.Second
	switch skew := c.Skew.Round(time.Second); {
	case c.Skew > most:
		return fmt.Sprintf("The clock of this machine is %s behind that of the servers, by which the ages are.", Span(skew))
	case c.Skew < -most:
		return fmt.Sprintf("The clock of this machine is %s ahead of that of the servers, by which the ages are.", Span(-skew))
	}
	return ""
}

// Ago returns how long ago a time of the servers was, for people.
func (c Clock) Ago(at time.Time) string {
	if at.IsZero() {
		return "?"
	}
	return Span(c.Time.Sub(at))
}

// Span returns a duration for people, with two units at most: "12s", "3m4s", "5h12m", "3d4h".
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(0, d); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}
