package core

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

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
		return fmt.Errorf("asked to create %q the server made %q", asked, short(made))
	}
	return nil
}

// checkNames returns what is wrong with the names of children. A name with a slash, or a relative
// one, would lead elsewhere when it is appended to the directory's path.
func checkNames(a *codec.Answer) error {
	for _, name := range a.Names {
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, '/') >= 0 {
			return fmt.Errorf("a child called %q", short(name))
		}
	}
	return nil
}

// checkResults returns what is wrong with the results of a multi that was carried out, or was refused
// because of one of its operations. A multi that was carried out has a result of the kind of each
// operation. In one that was refused each result is an error, of which some say only that their operation
// was not carried out either.
func checkResults(ops []any, results []codec.Result) error {
	if len(results) != len(ops) {
		return fmt.Errorf("%d results of a multi of %d operations", len(results), len(ops))
	}
	refused := codeOfMulti(results) != codec.CodeOK
	for i, op := range ops {
		want := kindOf(op)
		if refused {
			want = codec.OpError
		}
		if results[i].Op != want {
			return fmt.Errorf("result %d of a multi is of kind %d, want kind %d", i, results[i].Op, want)
		}
		if c, ok := op.(*zk.CreateRequest); ok && !refused {
			if err := checkMade(c.Path, CreateMode{flag: c.Flags}, results[i].Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// short bounds the length of a text for errors and logs.
func short(s string) string {
	const limit = 200
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}

// kindOf returns the kind of an operation of a multi, and of its result.
func kindOf(op any) int32 {
	switch op.(type) {
	case *zk.CreateRequest:
		return codec.OpCreate
	case *zk.SetDataRequest:
		return codec.OpSetData
	case *zk.DeleteRequest:
		return codec.OpDelete
	}
	return codec.OpCheck
}

// codeOfMulti returns the code with which a multi was refused: that of the first operation that has one.
func codeOfMulti(results []codec.Result) int32 {
	for _, r := range results {
		if r.Code != codec.CodeOK {
			return r.Code
		}
	}
	return codec.CodeOK
}
