package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// CreateMode is a kind of node that stays when the session ends.
type CreateMode struct {
	op       int32 // 0 without a TTL
	flag     int32
	numbered bool
	ttl      time.Duration
}

// The kinds of node without a TTL. The zero value is Persistent.
var (
	Persistent           = CreateMode{flag: zk.FlagPersistent}
	PersistentSequential = CreateMode{flag: zk.FlagSequence, numbered: true}
	Container            = CreateMode{flag: zk.FlagContainer}
)

// PersistentTTL is a persistent node that the server removes once it has had no children and no changes for ttl, at
// least 1 ms. Servers need extendedTypesEnabled.
func PersistentTTL(ttl time.Duration) CreateMode {
	return CreateMode{op: codec.OpCreateTTL, flag: zk.FlagTTL, ttl: ttl}
}

// PersistentSequentialTTL is PersistentTTL with a sequence number.
func PersistentSequentialTTL(ttl time.Duration) CreateMode {
	return CreateMode{op: codec.OpCreateTTL, flag: zk.FlagPersistentSequentialWithTTL, numbered: true, ttl: ttl}
}

var (
	ephemeral           = CreateMode{flag: zk.FlagEphemeral}
	ephemeralSequential = CreateMode{flag: zk.FlagEphemeralSequential, numbered: true}
)

// validateCreate allows "/dir/" for a node that is called by its number alone.
func validateCreate(path string, mode CreateMode) error {
	if mode.op == codec.OpCreateTTL && mode.ttl < time.Millisecond {
		return misuse.Invalidf("TTL %v is below 1 ms", mode.ttl)
	}
	if mode.numbered && strings.HasSuffix(path, "/") && path != "/" {
		return misuse.ValidatePath(strings.TrimSuffix(path, "/"))
	}
	return misuse.ValidatePath(path)
}

// Create makes a node that stays when the session ends, and returns its path, which ends with a number in a
// sequential mode. It makes missing nodes above it as containers.
//
// Create waits for a connection, and returns when the server has answered, ctx has ended or the session has ended. It
// is sent once: if it may have been sent and was not answered, the error matches [ErrUncertain]. Otherwise it fails
// as Get does.
func (s *Session) Create(ctx context.Context, at string, data []byte, mode CreateMode) (string, error) {
	misuse.Context(ctx, "session: Session.Create")
	s.check()
	if err := errors.Join(validateCreate(at, mode), checkData(data)); err != nil {
		return "", err
	}
	parent, made := path.Dir(strings.TrimSuffix(at, "/")), false
	for pace := (rounds.Pace{Backoff: s.cfg.waits}); ; {
		r, err := s.request(ctx, false, s.cfg.making(at, data, s.cfg.acl, mode))
		if err == nil {
			return s.cfg.inward(r.Path), nil
		}
		if errors.Is(err, zk.ErrNoNode) {
			var now bool
			if now, err = s.makeDirectory(ctx, s.cfg.outward(parent)); err == nil {
				made, err = made || now, pace.Wait(ctx, s.life.Done()) // servers can remove an empty directory at any time
			}
			if err == nil {
				continue
			}
		}
		if made {
			s.giveBack(s.cfg.outward(parent))
		}
		return "", err
	}
}

// Set replaces the data of a node if the node has the given version (-1: any), and returns the new stat. It returns
// and fails as Create does.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Set")
	s.check()
	if err := errors.Join(misuse.ValidatePath(path), checkData(data)); err != nil {
		return nil, err
	}
	r, err := s.request(ctx, false, s.cfg.setting(path, data, version))
	return r.Stat, err
}

// Delete removes a node if it has the given version (-1: any). It returns and fails as Create does.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	misuse.Context(ctx, "session: Session.Delete")
	s.check()
	if err := misuse.ValidatePath(path); err != nil {
		return err
	}
	one := s.cfg.deleting(path, version)
	one.ended = func(r wire.Reply) { s.erased(&r, r.Code == codec.CodeOK || r.Code == codec.CodeNoNode, path) }
	_, err := s.request(ctx, false, one)
	return err
}

// erased takes the end of a user's request that deletes nodes, some of which may be the session's own. gone: an
// answer means that they are gone. Without an answer, the session finds out. Answers come in order, so no later node
// of the path is there yet.
func (s *Session) erased(r *wire.Reply, gone bool, paths ...string) {
	for _, path := range paths {
		p := s.room.at(path)
		switch {
		case p == nil:
		case r.Err == nil && gone:
			s.room.end(p)
		case r.Err != nil && !errors.Is(r.Err, wire.ErrNotSent):
			go func() {
				stat, err := s.existsBehindWrite(s.life, path)
				if err == nil && stat == nil || s.room.at(path) != p {
					s.room.end(p)
				}
			}()
		}
	}
}

// Multi carries out all of ops, or none. An operation is a *[zk.CreateRequest] of a persistent node, a
// *[zk.SetDataRequest], *[zk.DeleteRequest] or *[zk.CheckVersionRequest]. A create without an ACL gets that of
// [WithACL]. Multi returns the result of each operation, and the error of the one that failed. Otherwise it returns
// and fails as Create does.
func (s *Session) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	misuse.Context(ctx, "session: Session.Multi")
	s.check()
	e := codec.NewFrame()
	e.Int32(0)
	e.Int32(codec.OpMulti)
	var deleted []string
	kinds := make([]int32, len(ops))
	for i, op := range ops {
		part, err := s.operation(op)
		if err != nil {
			return nil, fmt.Errorf("multi: operation %d: %w", i, err)
		}
		if d, ok := op.(*zk.DeleteRequest); ok {
			deleted = append(deleted, d.Path)
		}
		kinds[i] = codec.Op(part)
		e.MultiHeader(kinds[i], false, -1)
		e.B = append(e.B, part[codec.RequestHead:]...)
	}
	e.MultiHeader(codec.OpError, true, -1)
	one := legOf("multi", "/", e)
	one.Check = func(a *codec.Answer) error { return checkResults(kinds, a.Results) }
	one.ended = func(r wire.Reply) {
		s.erased(&r, r.Code == codec.CodeOK && firstError(r.Results) == nil, deleted...)
	}
	if n := len(one.Frame); len(ops) == 0 || n > maxData+misuse.MaxPath {
		return nil, misuse.Invalidf("multi of %d operations and %d bytes", len(ops), n)
	}
	r, err := s.request(ctx, false, one)
	if err != nil {
		return nil, err
	}
	all := make([]zk.MultiResponse, len(r.Results))
	for i, one := range r.Results {
		all[i].Stat = one.Stat
		if one.Path != "" {
			all[i].String = s.cfg.inward(one.Path)
		}
		if one.Code != codec.CodeOK {
			all[i].Error = errorOf(one.Code)
		}
	}
	if refused := firstError(r.Results); refused != nil {
		err = opError("multi", "/", refused)
	}
	return all, err
}

func (s *Session) operation(op any) (frame []byte, err error) {
	switch op := op.(type) {
	case *zk.CreateRequest:
		acl, mode := op.Acl, CreateMode{flag: op.Flags, numbered: op.Flags == zk.FlagSequence}
		if len(acl) == 0 {
			acl = s.cfg.acl
		}
		if op.Flags != zk.FlagPersistent && op.Flags != zk.FlagSequence {
			err = misuse.Invalidf("flags %d of a create in a multi: only persistent nodes, with or without a number", op.Flags)
		}
		return s.cfg.making(op.Path, op.Data, acl, mode).Frame, errors.Join(err, validateCreate(op.Path, mode))
	case *zk.SetDataRequest:
		return s.cfg.setting(op.Path, op.Data, op.Version).Frame, misuse.ValidatePath(op.Path)
	case *zk.DeleteRequest:
		return s.cfg.deleting(op.Path, op.Version).Frame, misuse.ValidatePath(op.Path)
	case *zk.CheckVersionRequest:
		e := s.cfg.head(codec.OpCheck, op.Path)
		e.Int32(op.Version)
		return e.Frame(), misuse.ValidatePath(op.Path)
	}
	return nil, misuse.Invalidf("%T is not an operation of a multi", op)
}

// bare makes requests without the chroot, since that may have to be made too.
var bare = new(config)

// makeDirectory makes a directory, or waits for another call that does: many contenders find at once that it is
// missing. full has the chroot. A caller that puts nothing into a directory that it made gives it back.
func (s *Session) makeDirectory(ctx context.Context, full string) (made bool, err error) {
	failed, err := s.directories.do(ctx, s, full, func() (err error) {
		made, err = s.buildDirectory(ctx, full)
		return err
	})
	if err != nil {
		return false, opError("create", s.cfg.inward(full), err)
	}
	return made, failed
}

// buildDirectory makes a directory and every missing node above it. It begins with the leaf, since the client may
// have no rights further up. If it fails, it leaves nothing behind.
func (s *Session) buildDirectory(ctx context.Context, full string) (made bool, err error) {
	at, parent := s.cfg.inward(full), full[:strings.LastIndexByte(full, '/')]
	above := false // the parent was made, and may be empty
	defer func() {
		switch {
		case err == nil:
		case made && above:
			s.giveBack(full, parent)
		case made:
			s.giveBack(full)
		case above:
			s.giveBack(parent)
		}
	}()
	for pace := (rounds.Pace{Backoff: s.cfg.waits}); ; {
		_, err := repeat(ctx, s, "create", at, func(l *link) (*leg, error) {
			one := bare.making(full, nil, s.cfg.acl, Container)
			one.path = at
			err := s.fly(ctx, l, one)
			made = made || one.doubt
			return nil, err
		})
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, zk.ErrNodeExists):
			return made, nil
		case errors.Is(err, zk.ErrNoAuth): // servers check the right to create before they look for the node
			if r, _ := s.request(ctx, true, bare.reading(exists, full, false)); r.Stat != nil {
				return false, nil
			}
			return made, s.missing("create", at, err)
		case !errors.Is(err, zk.ErrNoNode) || parent == "":
			return made, err
		}
		now, err := s.makeDirectory(ctx, parent)
		if above = above || now; err != nil {
			return made, err
		}
		if err := pace.Wait(ctx, s.life.Done()); err != nil {
			return made, opError("create", at, err)
		}
	}
}

func (s *Session) missing(right, at string, err error) error {
	who := []string{}
	for _, id := range s.cfg.auths {
		name, _, _ := strings.Cut(string(id.Credential), ":")
		if id.Scheme != "digest" {
			name = ""
		}
		who = append(who, strings.TrimSuffix(id.Scheme+":"+name, ":"))
	}
	if s.cfg.sasl != nil {
		who = append(who, "sasl by "+s.cfg.sasl.Name)
	}
	who = append(who, "world")
	return fmt.Errorf("no right to %s in %s for %s: %w", right, path.Dir(at), strings.Join(who, ", "), err)
}

// giveBack removes directories after a session timeout, if they are not in use: a caller that tries again finds them
// until then. Servers before 3.10 keep a container that never had a child.
func (s *Session) giveBack(all ...string) {
	const asMade = 0
	time.AfterFunc(s.Timeout(), func() {
		ctx, cancel := context.WithTimeout(s.life, s.Timeout())
		defer cancel()
		for _, full := range all {
			_, _ = s.request(ctx, true, bare.deleting(full, asMade))
		}
	})
}
