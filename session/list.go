package session

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

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
	l, err := s.core().ListWith(ctx, path, core.ListOptions(o))
	if err != nil {
		return nil, err
	}
	own := listingOf(l)
	return &own, nil
}

// listingOf returns a copy, which the caller may change.
func listingOf(l core.Listing) Listing {
	return Listing{
		Names: slices.Clone(l.Names), Stat: statOf(l.Stat), Data: slices.Clip(slices.Clone(l.Data)), DataStat: statOf(l.DataStat),
		Directory: (*Watch)(l.Directory), Children: (*Watch)(l.Children),
	}
}

func statOf(s *zk.Stat) *zk.Stat {
	if s == nil {
		return nil
	}
	own := *s
	return &own
}
