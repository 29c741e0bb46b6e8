package core

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/watches"
)

// ListOptions is that of package session.
type ListOptions struct{ Sync, Data, Watch, Children bool }

// Listing is that of package session. Nobody may change what it points to, which others share.
type Listing struct {
	Names     []string
	Stat      *zk.Stat
	Data      []byte
	DataStat  *zk.Stat
	Directory *Watch
	Children  *Watch
}

// ListWith is List of session.Session.
func (s *Session) ListWith(ctx context.Context, path string, o ListOptions) (Listing, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return Listing{}, err
	}
	full, w := s.outward(path), (*Watch)(nil)
	l, err := do(ctx, s, hooks.RequestInfo{Op: "getChildren", Path: path}, always, func(done func(Listing, error)) {
		if o.Children {
			w = s.watches.Children.Alone(full)
		}
		s.listed(ctx, path, o, w, nil)(done)
	})
	if err != nil && w != nil {
		s.watches.Children.Drop(full, w)
	}
	return l, err
}

// List is Children, and sets a watch on the children in the same request. The
// watch ends as that of WatchChildren does, and is not shared. While it is pending, no child was
// created or deleted since the listing, as far as the server has told, and the connection of the
// listing lasts. It may have ended by the time at which List returns, also by an event that came
// before the listing.
func (s *Session) List(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	l, err := s.ListWith(ctx, path, ListOptions{Children: true})
	return l.Names, l.Stat, l.Children, err
}

// SyncedChildren is Children behind a sync that leaves after the call has begun. Both requests are sent together, so
// they take one round trip: a server answers the listing once it has caught up with the leader. The leader itself
// answers a sync from what it knows, also when it has been cut off from the others and does not know that yet.
func (s *Session) SyncedChildren(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	l, err := s.ListWith(ctx, path, ListOptions{Sync: true})
	return l.Names, l.Stat, err
}

// listed starts a listing, and ahead of it in one flight what else the options ask for. w is to be set on the children,
// or nil. A server answers in order. So the listing counts only if what left ahead of it was answered before it, over the
// same connection. Otherwise listed says that the connection was lost, and all of it is sent again. agreed, if it is not
// nil, says whether a write that left ahead of the listing was answered. It is asked when the listing is, and not when the
// data is, which can be later.
func (s *Session) listed(ctx context.Context, path string, o ListOptions, w *Watch, agreed func() bool) starter[Listing] {
	return func(done func(Listing, error)) {
		over, full := s.present(), s.outward(path)
		var caughtUp atomic.Bool
		if o.Sync {
			traced := s.traceRequest(ctx, hooks.RequestInfo{Op: "sync", Path: path})
			s.sync(ctx, full)(func(_ struct{}, err error) {
				caughtUp.Store(err == nil)
				s.withHooks(func() { traced(s.verdict(err)) })
			})
		}
		data := s.readDirectory(ctx, path, o)
		end := func(c children, err error) {
			l := Listing{Names: c.names, Stat: c.stat, Children: w}
			if err == nil && data != nil { // it is answered
				l.Data, l.DataStat, err = data.Result()
				err = besideListing(err)
			}
			if o.Watch {
				l.Directory = data
			}
			if err != nil {
				if w != nil {
					s.watches.Children.Drop(full, w)
				}
				l = Listing{}
			}
			done(l, err)
		}
		s.listing(ctx, full, w != nil)(func(c children, err error) {
			if w != nil {
				s.watches.Children.Land(full, w, nil, nil, err)
			}
			if err == nil && (s.present() != over || o.Sync && !caughtUp.Load() || agreed != nil && !agreed()) {
				err = zk.ErrConnectionClosed
			}
			if err == nil && data != nil && !data.Answered() { // another caller shares the watch, and is about to set it
				err = s.begin(func() {
					select {
					case <-data.Ready():
						end(c, nil)
					case <-s.life.Done():
						end(c, s.Err())
					}
				})
				if err == nil {
					return
				}
			}
			end(c, err)
		})
	}
}

// readDirectory reads the data of a directory if the options ask for that, with a watch that is shared or without one. It
// returns where the answer comes to, or nil.
func (s *Session) readDirectory(ctx context.Context, path string, o ListOptions) *Watch {
	if !o.Data {
		return nil
	}
	table := &s.watches.Data
	if !o.Watch {
		table = new(watches.Table) // no event, and nobody else, finds the way there
	}
	one := reading(codec.OpGetData, s.outward(path), o.Watch)
	one.Dir = s.outward(path) // it keeps its place between the sync or the create and the listing
	return s.join(ctx, table, hooks.RequestInfo{Op: "getData", Path: path}, one)
}

// besideListing returns what the error of a read of the data means if the listing of the directory has none. The directory
// can have been made in between, also since another caller has sent the read: both have to be asked again.
func besideListing(err error) error {
	if errors.Is(err, zk.ErrNoNode) || Uncertain(err) && !errors.Is(err, ErrTooLong) {
		return zk.ErrConnectionClosed
	}
	return err
}
