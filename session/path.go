package session

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/rounds"
)

// validatePath is plumbing.ValidatePath.
func validatePath(path string) error {
	switch {
	case path == "":
		return invalidf("path is empty")
	case path[0] != '/':
		return invalidf("path %q does not begin with a slash", path)
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return invalidf("path %q ends with a slash", path)
	case len(path) > maxPath:
		return invalidf("path of %d bytes: the limit is %d", len(path), maxPath)
	case !utf8.ValidString(path):
		return invalidf("path %q is not UTF-8", path)
	}
	for _, element := range strings.Split(path[1:], "/") {
		switch element {
		case "":
			return invalidf("path %q has an empty element", path)
		case ".", "..":
			return invalidf("path %q has the relative element %q", path, element)
		}
	}
	for _, r := range path {
		if forbiddenRune(r) {
			return invalidf("path %q has the forbidden character %U", path, r)
		}
	}
	return nil
}

// maxPath keeps a request with a path and its node name within one buffer.
const maxPath = 16 << 10

// forbiddenRune holds ZooKeeper's list (PathUtils.validatePath). What is beyond
// the basic plane is refused as well: Java sees it as surrogates, which that
// list forbids.
func forbiddenRune(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f ||
		r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// outward and inward put the chroot before a path and take it off again: zk.Conn
// knows none.
func (s *Session) outward(path string) string { return s.cfg.outward(path) }

func (c *config) outward(path string) string {
	if path == "/" && c.chroot != "" {
		return c.chroot
	}
	return c.chroot + path
}

func (s *Session) inward(path string) string {
	rest := strings.TrimPrefix(path, s.cfg.chroot)
	if rest == "" {
		return "/"
	}
	return rest
}

// makeParents is plumbing.Session.MakeParents.
func (s *Session) makeParents(ctx context.Context, dir string) error {
	if err := validatePath(dir); err != nil {
		return err
	}
	return s.makeNodes(ctx, s.outward(dir))
}

// makeNodes works from the leaf up, since whoever may create in a directory
// need not have that right further up.
func (s *Session) makeNodes(ctx context.Context, full string) error {
	again := rounds.Pace{New: s.cfg.retry}
	for {
		err := s.makeNode(ctx, full)
		parent := full[:strings.LastIndexByte(full, '/')]
		if !errors.Is(err, zk.ErrNoNode) || parent == "" {
			return err
		}
		if err := s.makeNodes(ctx, parent); err != nil {
			return err
		}
		if err := again.Wait(ctx, s.Done()); err != nil {
			return opError(RequestInfo{Op: "create", Path: s.inward(full)}, err)
		}
	}
}

// makeNode makes one node of a path that has the chroot on it already. Any
// number of tries make one node, so unlike other creates it is repeated when a
// reply is lost.
func (s *Session) makeNode(ctx context.Context, full string) error {
	var err error
	for _, mode := range []CreateMode{Container, Persistent} {
		_, err = do(ctx, s, RequestInfo{Op: "create", Path: s.inward(full)}, always, func() (string, error) {
			return s.create(full, nil, mode)
		})
		if !isUnimplemented(err) {
			break
		}
	}
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoAuth) && s.isThere(ctx, full):
		return nil // servers ask for the right to create before they look
	}
	return err
}

func (s *Session) isThere(ctx context.Context, full string) bool {
	there, err := do(ctx, s, RequestInfo{Op: "exists", Path: s.inward(full)}, always, func() (bool, error) {
		ok, _, err := s.conn.Exists(full)
		return ok, err
	})
	return err == nil && there
}
