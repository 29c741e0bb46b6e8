package session

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// What a server answers in good form can still be no answer to what was asked. Taken at its
// word, it would have us hold, or delete, what is somebody else's.

// What no server grants without being asked for it, whatever it is set up to insist on. With a
// timeout of weeks the clock would never run out; one of a millisecond is over as it begins,
// and zk.Conn pings by it.
const (
	longestGrant  = time.Hour
	shortestGrant = 10 * time.Millisecond
)

// checkTimeout refuses such a timeout.
func (c *config) checkTimeout(g wire.Greeting) error {
	granted := g.Timeout()
	if granted > max(c.timeout, longestGrant) || granted < min(c.timeout, shortestGrant) {
		return fmt.Errorf("%w: a session timeout of %v, where %v was asked for", wire.ErrBadFrame, granted, c.timeout)
	}
	return nil
}

// rejectReply closes the connection on which an answer came that cannot be, if there is something
// wrong with it, and makes of that the error of a lost reply: what has come of the request
// nobody knows.
func (s *Session) rejectReply(wrong error) error {
	if wrong == nil {
		return nil
	}
	wrong = fmt.Errorf("%w: %w", wire.ErrBadFrame, wrong)
	(*wireEvents)(s).Broken(wrong)
	s.cut()
	return fmt.Errorf("%w: %w", zk.ErrConnectionClosed, wrong)
}

// checkMade says what is wrong with the path that the server gave to a node which was asked
// for by another: for a sequential one that path with a number, printed with "%010d".
func checkMade(asked string, m CreateMode, made string) error {
	rest, ok := strings.CutPrefix(made, asked)
	if m.sequential() && ok {
		n, err := strconv.ParseInt(rest, 10, 32)
		ok = err == nil && fmt.Sprintf("%010d", n) == rest
	} else if rest != "" {
		ok = false
	}
	if !ok {
		return fmt.Errorf("asked to create %q the server made %q", asked, short(made))
	}
	return nil
}

// checkNames says what is wrong with the names of children: one that is more than a name would
// lead elsewhere when it is put behind its directory's.
func checkNames(names []string) error {
	for _, name := range names {
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, '/') >= 0 {
			return fmt.Errorf("a child called %q", short(name))
		}
	}
	return nil
}

// checkResults says what is wrong with the results of a multi that was carried out, or was
// refused with results.
func checkResults(ops []any, results []zk.MultiResponse, refused bool) error {
	if refused && len(results) == 0 {
		return nil
	}
	if len(results) != len(ops) {
		return fmt.Errorf("%d results of a multi of %d operations", len(results), len(ops))
	}
	for i, op := range ops {
		if c, ok := op.(*zk.CreateRequest); ok && !refused {
			if err := checkMade(c.Path, CreateMode{flag: c.Flags}, results[i].String); err != nil {
				return err
			}
		}
	}
	return nil
}

// short keeps what goes into an error and the log within bounds.
func short(s string) string {
	const limit = 200
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
