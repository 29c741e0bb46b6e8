package queue

import (
	"context"
	"fmt"
	"iter"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Observe follows the contender that is the first in the queue: the holder of a mutex, or the leader of an election. It
// does not contend.
//
//	for first, err := range q.Observe(ctx, queue.Mutex()) {
//		switch {
//		case err != nil:
//			return err // ctx has ended, or the manager was closed
//		case first.Path == "":
//			forget() // nobody contends
//		default:
//			show(first.ID, first.Since)
//		}
//	}
//
// The first pair has the contender that is the first now. If nobody contends, the Contender is the zero value. The next
// pair comes when another contender is the first, or none. An error is the last pair: the error of ctx when ctx ends,
// [session.ErrClosed] when the manager is closed, [ErrConflict], [session.ErrInvalid] for a bad kind, or what the
// server refuses. So the loop ends with an error, or by a break or a return in its body.
//
// Observe goes on across lost connections and sessions. While there is no connection it knows of no change, and the
// last pair stands. It does not miss the latest change, but it can miss a contender that was soon followed by another.
// A contender can be at work before Observe tells of it. Observe does not see that a contender becomes a holder if it
// is the first already, as readers behind a reader and most leases of a semaphore: use [Queue.Contenders] for their
// kinds.
//
// Observe does not poll. It lists the directory and reads the first node with a watch, and sends nothing until that
// node changes. Then it reads the next one, so a change costs one or two reads, however many contend. While there is no
// directory, Observe looks for it once in a session timeout, as servers do not tell of one that the process may not
// read. It works in the goroutine of the loop. A loop that has ended leaves a watch on the server until the node goes,
// which later loops of the process share. The sequence can be used again, and by several goroutines at once.
func (q *Queue) Observe(ctx context.Context, kind *Kind) iter.Seq2[Contender, error] {
	made := q.place()
	misuse.Context(ctx, "queue: Queue.Observe")
	return func(yield func(Contender, error) bool) {
		if err := kind.Check(); err != nil {
			yield(Contender{}, fmt.Errorf("queue: %w", err))
			return
		}
		line := made.Line(kind)
		for {
			first, err := line.Next(ctx)
			if !yield(first, err) || err != nil {
				return
			}
		}
	}
}
