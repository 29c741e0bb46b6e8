package election

import (
	"fmt"
	"unicode/utf8"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Option changes an [Election]. [New] returns an error that matches [session.ErrInvalid] for an option
// that is nil or has a bad value.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

type config struct {
	id      string
	name    string // "": none
	latch   bool
	termEnd func(error) error
}

// WithID sets the id of this candidate, which [Election.Leader] shows to other processes, and so do
// getLeader and getParticipants of Curator. It is a good place for the address at which the leader can
// be reached. Several candidates can have the same id.
//
// The id is the data of the candidate's node. It must be UTF-8, not empty, and no longer than 64 KiB.
// Default: host/pid of this process.
func WithID(id string) Option {
	return option(func(c *config) error {
		if id == "" || !utf8.ValidString(id) {
			return fmt.Errorf("%w: id %.40q: want text of at least one byte", session.ErrInvalid, id)
		}
		if len(id) > longestID {
			return fmt.Errorf("%w: an id of %d bytes: the limit is %d", session.ErrInvalid, len(id), longestID)
		}
		c.id = id
		return queue.Request{Kind: queue.Mutex(), Data: []byte(id)}.Check()
	})
}

const longestID = 64 << 10

// idOf returns the id of the candidate whose node has this data. It is "" after a request to resign
// has replaced the data.
func idOf(data []byte) string {
	if string(data) == queue.RevokeMessage {
		return ""
	}
	return string(data)
}

// WithLeaderLatch shares the election with Curator's LeaderLatch at the same path. All candidates of
// this module at the path must have the option. A candidate that finds nodes without it fails with
// [queue.ErrConflict]. Default: the election is shared with Curator's LeaderSelector.
func WithLeaderLatch() Option {
	return option(func(c *config) error {
		c.latch = true
		return nil
	})
}

// WithTermEnd sets a function that decides, after each term of this candidate, whether it campaigns
// again. [Election.Run] calls f in its goroutine when the leadership has been given up. err says why the
// term has ended:
//
//   - nil: the leader's function has returned nil.
//   - An error that matches [session.ErrLost]: the leadership was lost.
//   - An error that matches [ErrResigned]: the candidate was asked to resign.
//   - Otherwise: the error of the leader's function, or the server's refusal to remove the node.
//
// In the second and the third case, err also matches the error of the leader's function, except that
// after a loss it does not match that of the ended context. If f returns nil, Run campaigns again. If f
// returns an error, Run returns that error. If the context of Run has ended, Run returns in any case.
//
// Default: campaign again in the first three cases, and return err in the last. To end a process that has
// lost the leadership, return err in the second case too. To campaign again after a failed term, log err
// and return nil. Run waits before it stands again then, longer each time: see [Election.Run].
func WithTermEnd(f func(err error) error) Option {
	return option(func(c *config) error {
		if f == nil {
			return fmt.Errorf("%w: WithTermEnd of a nil function", session.ErrInvalid)
		}
		c.termEnd = f
		return nil
	})
}
