package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/session"
)

// pathArg returns the path in an argument. Slashes at the end do no harm. It does no I/O.
func pathArg(arg string) (string, error) {
	p := strings.TrimRight(arg, "/")
	if p == "" && arg != "" {
		p = "/"
	}
	if err := misuse.ValidatePath(p); err != nil {
		return "", usagef("%s", strings.TrimPrefix(err.Error(), session.ErrInvalid.Error()+": "))
	}
	if locks.IsSystem(p) {
		return "", usagef("%s is ZooKeeper's own: no locks are there", p)
	}
	return p, nil
}

// lockArg is pathArg for a lock, which cannot be at the root.
func lockArg(arg string) (string, error) {
	p, err := pathArg(arg)
	if err == nil && p == "/" {
		return "", usagef("a lock has a directory of its own below /")
	}
	return p, err
}

// plain returns an error of a request about a path in plain words, with its exit status.
func (a *App) plain(path string, err error) error {
	var long *locks.TooLongError
	var broken *locks.BrokenError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &long):
		return withCode(codeFailed, fmt.Errorf("%s. zkCli.sh shows it if the environment has CLIENT_JVMFLAGS=-Djute.maxbuffer=1000000000. Delete nodes that nobody needs, or name a path below", clean(long.Error())))
	case errors.As(err, &broken):
		return withCode(codeConnect, fmt.Errorf("%s. If it is long and the network slow, a longer --timeout gives it more time", clean(broken.Error())))
	case errors.Is(err, zk.ErrNoNode):
		return withCode(codeNotFound, fmt.Errorf("%s does not exist. Either nobody has used a lock there for a while, since servers remove empty directories, or the path is wrong", path))
	case errors.As(err, new(*codeError)):
		return err
	case errors.Is(err, zk.ErrNoAuth):
		return a.lacks(path, zk.PermRead)
	case errors.Is(err, locks.ErrUnreachable):
		return withCode(codeConnect, errors.New("no server answers any more"))
	case errors.Is(err, session.ErrLost):
		return withCode(codeConnect, errors.New("the session was lost"))
	}
	return err
}
