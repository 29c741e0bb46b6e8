package core

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// These are the sanity checks of answers that are well-formed but cannot be true. If we believed
// them, we could hold, or delete, another client's node. Package wire checks the form of answers, and ends
// the connection on which a check of either kind fails. Nobody knows then what became of the request.

// Session timeouts that no server grants unless it is asked for them. With a timeout of weeks the
// clock would never run out. A timeout of a millisecond is over at once.
const (
	longestGrant  = time.Hour
	shortestGrant = 10 * time.Millisecond
)

// checkTimeout refuses a greeting with such a timeout.
func (c *Config) checkTimeout(g codec.Greeting) error {
	granted := g.Timeout()
	if granted > max(c.Timeout, longestGrant) || granted < min(c.Timeout, shortestGrant) {
		return fmt.Errorf("%w: a session timeout of %v, after %v was asked for", codec.ErrBadFrame, granted, c.Timeout)
	}
	return nil
}

// checkMade returns what is wrong with the path of a node that the server has made. It must be
// the path asked for, and for a sequential node that path and a number, printed with "%010d".
func checkMade(asked string, m CreateMode, made string) error {
	rest, ok := strings.CutPrefix(made, asked)
	if m.sequential() && ok {
		n, err := strconv.ParseInt(rest, 10, 32)
		ok = err == nil && fmt.Sprintf("%010d", n) == rest
	} else if rest != "" {
		ok = false
	}
	if !ok {
		return fmt.Errorf("asked to create %q the server made %.200q", asked, made)
	}
	return nil
}

// checkNames returns what is wrong with the names of children. A name with a slash, or a relative
// one, would lead elsewhere when it is appended to the directory's path.
func checkNames(a *codec.Answer) error {
	for _, name := range a.Names {
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, '/') >= 0 {
			return fmt.Errorf("a child called %.200q", name)
		}
	}
	return nil
}
