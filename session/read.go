package session

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// Get returns the data of a node, and its stat.
//
// It returns when the server has answered, ctx has ended or the session has ended. Like [Session.Children] and
// [Session.Exists], it is repeated if the connection is lost. Errors are those of go-zookeeper, ctx's, or match [ErrLost],
// [ErrClosed] or [ErrInvalid].
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Get")
	r, err := s.read(ctx, path, s.check().cfg.reading(codec.OpGetData, path, false))
	return r.Data, r.Stat, err
}

// Children returns the names of a node's children, in no order, and the node's stat. It returns and fails as Get does.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Children")
	r, err := s.read(ctx, path, s.check().cfg.reading(codec.OpGetChildren2, path, false))
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(r.Names), copyStat(r.Stat), nil // others may share the answer
}

// Exists returns the stat of a node, or nil if there is no such node. It returns and fails as Get does.
func (s *Session) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Exists")
	r, err := s.read(ctx, path, s.check().cfg.reading(codec.OpExists, path, false))
	return r.Stat, ignoreNoNode(err)
}

// ACL returns the access control list of a node. To a client without the right ADMIN to the node, servers show "x" in place
// of the hash in an entry with the scheme "digest". It returns and fails as Get does, with [zk.ErrNoAuth] for a client that
// has neither the right READ nor ADMIN.
func (s *Session) ACL(ctx context.Context, path string) ([]zk.ACL, error) {
	misuse.Context(ctx, "session: Session.ACL")
	r, err := s.read(ctx, path, legOf("getACL", path, s.check().cfg.head(codec.OpGetACL, path)))
	return r.ACL, err
}

// Sync returns when the server that the session is connected to has caught up with the leader. It returns and fails as
// Get does.
func (s *Session) Sync(ctx context.Context, path string) error {
	misuse.Context(ctx, "session: Session.Sync")
	_, err := s.read(ctx, path, legOf("sync", path, s.check().cfg.head(codec.OpSync, path)))
	return err
}

func (s *Session) read(ctx context.Context, path string, one *leg) (*wire.Reply, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return new(wire.Reply), err
	}
	return s.request(ctx, true, one)
}

func copyStat(s *zk.Stat) *zk.Stat {
	if s == nil {
		return nil
	}
	own := *s
	return &own
}

// ListOptions says what [Session.List] does beside the listing. It all leaves in one flight with it.
type ListOptions struct {
	// Sync asks for a sync ahead of the listing, which leaves after the call has begun. So the listing shows everything that
	// the servers had agreed to when List was called, unless the leader has been cut off from the others and does not know
	// that yet.
	Sync bool
	// Data asks for the data of the directory too. It is read behind the sync and before the listing.
	Data bool
	// Watch asks, with Data, for a watch on the data of the directory. It is shared as that of [Session.Watch] is.
	Watch bool
	// Children asks for a watch on the children of the directory, for this call alone.
	Children bool
}

// Listing is what a directory was at a moment.
type Listing struct {
	// Names has the names of the children, in no order.
	Names []string
	// Stat is the stat of the directory that came with Names.
	Stat *zk.Stat
	// Data and DataStat are the data of the directory and the stat that came with it, if they were asked for. If a watch was
	// shared, they are those with which it was set. Data is what the directory had at the time of the listing if Mzxid
	// of DataStat is that of Stat.
	Data     []byte
	DataStat *zk.Stat
	// Directory is a watch on the data of the directory, if it was asked for, and otherwise nil. Data came with it.
	Directory *Watch
	// Children is a watch on the children of the directory, if it was asked for, and otherwise nil. The listing has set it. As
	// long as it is pending, no child has come or gone since the listing, as far as the server has told. It may have ended by
	// the time at which the call returns, also by an event that came before the listing.
	Children *Watch
}

// List lists a directory, with more in the same flight as o asks. All of it comes over one connection, in the order sync,
// data, listing. If the connection is lost before the last answer, all of it is sent again. List returns and fails as Get
// does.
func (s *Session) List(ctx context.Context, path string, o ListOptions) (*Listing, error) {
	misuse.Context(ctx, "session: Session.List")
	s.check()
	if err := misuse.ValidatePath(path); err != nil {
		return nil, err
	}
	return repeat(ctx, s, "getChildren", path, true, func(l *link) (*Listing, bool, error) {
		var before []*leg
		if o.Sync {
			before = append(before, legOf("sync", path, s.cfg.head(codec.OpSync, path)))
		}
		listing, err := s.list(ctx, l, path, o, before...)
		return listing, false, err
	})
}

// copied returns a copy that its caller may change. It has the same watches.
func (l *Listing) copied() *Listing {
	if l == nil {
		return nil
	}
	own := *l
	own.Names, own.Stat = slices.Clone(l.Names), copyStat(l.Stat)
	own.Data, own.DataStat = slices.Clip(slices.Clone(l.Data)), copyStat(l.DataStat)
	return &own
}

// list sends a listing, and ahead of it in one flight other requests, and a read of the data if o asks for it. The listing
// counts only if the others were answered over the same connection.
func (s *Session) list(ctx context.Context, l *link, path string, o ListOptions, flight ...*leg) (*Listing, error) {
	out := new(Listing)
	var data *leg
	switch {
	case o.Data && o.Watch:
		out.Directory, data = s.join(onData, path)
	case o.Data:
		data = s.cfg.reading(codec.OpGetData, path, false)
	}
	if data != nil {
		flight = append(flight, data)
	}
	last := s.cfg.reading(codec.OpGetChildren2, path, o.Children)
	if o.Children {
		out.Children = s.watches.add(s, onChildren, path)
		last.ended = out.Children.land
	}
	err := s.fly(ctx, l, append(flight, last)...)
	switch {
	case err != nil:
		if errors.Is(err, zk.ErrNoNode) && last.answered && last.reply.Stat != nil { // the directory has been made since it was read
			err = zk.ErrConnectionClosed
		}
	case out.Directory != nil:
		if err = s.isSet(ctx, out.Directory); err == nil {
			out.Data, out.DataStat = slices.Clip(slices.Clone(out.Directory.reply.Data)), copyStat(out.Directory.reply.Stat)
		}
	case data != nil:
		out.Data, out.DataStat = slices.Clip(data.reply.Data), data.reply.Stat
	}
	if err != nil {
		out.forget()
		return nil, err
	}
	out.Names, out.Stat = slices.Clone(last.reply.Names), copyStat(last.reply.Stat) // others may share the answer
	return out, nil
}

// forget ends the use of the watches of a listing that is not returned. l may be nil.
func (l *Listing) forget() {
	if l == nil {
		return
	}
	for _, w := range []*Watch{l.Directory, l.Children} {
		if w != nil {
			w.Forget()
		}
	}
}
