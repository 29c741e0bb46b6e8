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

// Get returns the data of a node, and its stat, when the server has answered, ctx has ended or the session has ended.
// It is repeated if the connection is lost. Errors are those of go-zookeeper, ctx's, or match [ErrLost], [ErrClosed]
// or [ErrInvalid].
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Get")
	r, err := s.read(ctx, path, s.check().cfg.reading(getData, path, false))
	return r.Data, r.Stat, err
}

// Children returns the names of a node's children, in no order, and its stat. It returns and fails as Get does.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Children")
	r, err := s.read(ctx, path, s.check().cfg.reading(getChildren, path, false))
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(r.Names), copyStat(r.Stat), nil
}

// Exists returns the stat of a node, or nil if there is none. It returns and fails as Get does.
func (s *Session) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Exists")
	r, err := s.read(ctx, path, s.check().cfg.reading(exists, path, false))
	return r.Stat, ignoreNoNode(err)
}

// ACL returns the access control list of a node, without the hashes of digests unless the client has the right ADMIN.
// It returns and fails as Get does.
func (s *Session) ACL(ctx context.Context, path string) ([]zk.ACL, error) {
	misuse.Context(ctx, "session: Session.ACL")
	r, err := s.read(ctx, path, legOf("getACL", path, s.check().cfg.head(codec.OpGetACL, path)))
	return r.ACL, err
}

// Sync returns when the server of the session has caught up with the leader. It returns and fails as Get does.
func (s *Session) Sync(ctx context.Context, path string) error {
	misuse.Context(ctx, "session: Session.Sync")
	_, err := s.read(ctx, path, s.check().cfg.syncing(path))
	return err
}

func (s *Session) read(ctx context.Context, path string, one *leg) (wire.Reply, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return wire.Reply{}, err
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

// ListOptions says what [Session.List] asks for beside the listing.
type ListOptions struct {
	// Sync asks for a sync ahead of the listing, which then shows what the servers had agreed to when List was
	// called, unless a leader that has been cut off does not know that yet.
	Sync bool
	// Data asks for the data of the directory, ahead of the listing.
	Data bool
	// Watch asks, with Data, for a watch on it, shared as that of [Session.Watch].
	Watch bool
	// Children asks for a watch on the children, for this call alone.
	Children bool
}

// Listing is a directory at a moment.
type Listing struct {
	// Names are in no order.
	Names []string
	// Stat came with Names.
	Stat *zk.Stat
	// Data and DataStat are the directory's: of the time of the listing if both stats have the same Mzxid.
	Data     []byte
	DataStat *zk.Stat
	// Directory is a watch on the data, or nil. Call Forget for it and for Children when they are not needed any more.
	Directory *Watch
	// Children is a watch on the children, or nil. While it is pending, none has come or gone since the listing.
	Children *Watch
}

// List lists a directory, and asks for more in the same flight, over one connection and in the order sync, data,
// listing. It returns and fails as Get does.
func (s *Session) List(ctx context.Context, path string, o ListOptions) (*Listing, error) {
	misuse.Context(ctx, "session: Session.List")
	s.check()
	if err := misuse.ValidatePath(path); err != nil {
		return nil, err
	}
	return repeat(ctx, s, "getChildren", path, func(l *link) (*Listing, error) {
		var before []*leg
		if o.Sync {
			before = append(before, s.cfg.syncing(path))
		}
		return s.list(ctx, l, path, o, before...)
	})
}

// list sends a listing behind other requests, and fails unless these were answered over the same connection.
func (s *Session) list(ctx context.Context, l *link, path string, o ListOptions, flight ...*leg) (*Listing, error) {
	out := new(Listing)
	var data *leg
	switch {
	case o.Data && o.Watch:
		out.Directory, data = s.join(getData, path, false)
	case o.Data:
		data = s.cfg.reading(getData, path, false)
	}
	if data != nil {
		flight = append(flight, data)
	}
	var last *leg
	if o.Children {
		out.Children, last = s.join(getChildren, path, true)
	} else {
		last = s.cfg.reading(getChildren, path, false)
	}
	err := s.fly(ctx, l, append(flight, last)...)
	switch {
	case err != nil:
		if errors.Is(err, zk.ErrNoNode) && last.reply.Stat != nil { // made between the two reads: with this error both are sent again
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
