package queue

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// ReadConfig returns the data of the queue's directory, which a kind with a [Configuration] decides by. If
// there is no directory, it returns the zero value. It fails with ctx's error, [session.ErrClosed] or what
// the server refuses.
func (q *Queue) ReadConfig(ctx context.Context) (Config, error) {
	made := q.place()
	misuse.Context(ctx, "queue: Queue.ReadConfig")
	return made.ReadConfig(ctx)
}

// Reconfigure replaces the data of the queue's directory by what change returns for the old data. It makes
// the directory if there is none. Waiting contenders of a kind with a [Configuration] then decide again.
// change may be called several times: when somebody else has changed the data meanwhile, or when the reply to
// the change was lost.
//
// In the same transaction it creates or deletes a persistent child of the directory that is named pin. With
// keep the child is there, and the directory and its data stay although nobody contends. Without keep it is
// not, and servers remove the directory when it is empty. The next contender then sets the data that its kind
// has.
//
// Reconfigure returns nil when the server has confirmed the change. If ctx ends before that, it returns an
// error that matches ctx.Err(), and the data may have been set. It fails with the error of change, which
// changes nothing, with [session.ErrClosed] or what the server refuses, and with [session.ErrInvalid] if
// change is nil, or if pin is the name of a contender or no name at all.
func (q *Queue) Reconfigure(
	ctx context.Context, pin string, keep bool, change func(old Config) ([]byte, error),
) error {
	made := q.place()
	misuse.Context(ctx, "queue: Queue.Reconfigure")
	return made.Reconfigure(ctx, pin, keep, change)
}
