package election

import (
	"context"
	"iter"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
)

// Observe returns what [Election.Leader] returns, now and after each change:
//
//	for leader, err := range e.Observe(ctx) {
//		switch {
//		case errors.Is(err, election.ErrNoLeader):
//			forget()
//		case err != nil:
//			return err // ctx has ended, or the manager was closed
//		default:
//			forwardTo(leader.ID)
//		}
//	}
//
// The first pair says which candidate leads, or is an error that matches [ErrNoLeader]. The next pair
// comes when another candidate leads, or none. Any other error is the last pair: the error of ctx when
// ctx ends, [session.ErrClosed] when the manager is closed, [queue.ErrConflict], or what the server
// refuses. So the loop ends with an error, or by a break or a return in its body.
//
// Observe goes on across lost connections and sessions. While there is no connection it knows of no
// change, and the last pair stands. It does not miss the latest change, but it can miss a leader that was
// soon followed by another. The next leader can be at work before Observe tells of it.
//
// Observe does not poll. It reads the node of the leader, with a watch, and sends nothing until that node changes. Then
// it reads that of the next candidate, so a change costs an observer one or two reads, however many candidates there
// are. While the election has no directory, Observe looks for it once in a session timeout, as servers do not tell of
// one that the process may not read. It works in the goroutine of the loop. A loop that has ended leaves a watch on the
// server until the leader changes, which later loops of the process share. The sequence can be used again, and by
// several goroutines at once. An observer need not be a candidate.
func (e *Election) Observe(ctx context.Context) iter.Seq2[queue.Contender, error] {
	e.made()
	misuse.Context(ctx, "election: Election.Observe")
	return func(yield func(queue.Contender, error) bool) {
		for first, err := range e.queue.Observe(ctx, e.request.Kind) {
			if !yield(e.leader(first, err)) {
				return
			}
		}
	}
}
