package core

import (
	"context"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// A contender has several nodes to watch at once, and at first needs to know of each no more than when it goes.
// One setWatches is enough for that. Clients send this request when they have reconnected: it sets watches on any
// number of nodes, and those that have gone it reports as deleted. It sends no data, so it costs the server no
// more than one get.

// watchedBytes bounds the paths of one request, so that its frame fits every server.
const watchedBytes = 16 << 10

// StartWatches waits for a connection until ctx ends, and then sets data watches on nodes, of which there
// is at least one, with one request. It does not wait for the answer, and no data comes with it: a later
// StartWatch or Watch of a path shares the watch, and asks for the data. The watch on a node that is gone
// ends as WatchDeleted before its Set is closed. A watch may end as WatchChanged if the node was changed just
// before.
func (s *Session) StartWatches(ctx context.Context, paths ...string) ([]*Watch, error) {
	for _, path := range paths {
		if err := misuse.ValidatePath(path); err != nil {
			return nil, err
		}
	}
	if err := s.ready(ctx); err != nil {
		return nil, opError(hooks.RequestInfo{Op: "setWatches", Path: paths[0]}, err)
	}
	return s.startWatches(ctx, paths), nil
}

// GiveBack says that the caller no longer needs a watch of StartWatches. It is called once for each time that
// StartWatches has returned the watch, which then must not be waited for any more. When all callers have given a
// watch back, the session forgets it: if the client may not read the node, the server never tells when that
// goes. A StartWatch or Watch of the path keeps the watch until it ends.
func (s *Session) GiveBack(path string, w *Watch) { s.watches.giveBack(s.outward(path), w) }

// startWatches returns the watches on the data of nodes, in the order of the paths. It sends a request for all of
// them, also for those that are shared and set: they may have been set after something that the caller has to know.
func (s *Session) startWatches(ctx context.Context, paths []string) []*Watch {
	all := make([]*Watch, 0, len(paths))
	from, bytes := 0, 0
	for i, path := range paths {
		if bytes += len(path); bytes > watchedBytes && i > from {
			all = append(all, s.setBare(ctx, paths[from:i])...)
			from, bytes = i, len(path)
		}
	}
	return append(all, s.setBare(ctx, paths[from:])...)
}

// setBare sets watches by one request.
func (s *Session) setBare(ctx context.Context, paths []string) []*Watch {
	full, all := make([]string, len(paths)), make([]*Watch, len(paths))
	for i, path := range paths {
		full[i] = s.outward(path)
		all[i] = s.watches.joinBare(full[i])
	}
	info := hooks.RequestInfo{Op: "setWatches", Path: paths[0]}
	startWatching(ctx, s, info, s.setWatches(full), func(_ struct{}, err error) {
		for i, w := range all {
			s.watches.landBare(full[i], w, err)
		}
	})
	return all
}
