package ensemble

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/visit"
)

// Servers tell their jute.maxbuffer to nobody but Java's tools. But they say it in a way: they hang up when they have read
// the length of a request that is longer. So check sends handshakes of several lengths, for a session that does not exist.
// A server that has read such a handshake answers that the session is over. It makes no session and no node, and writes a
// line to its own log.

// usualRequest is ZooKeeper's default of jute.maxbuffer. Longer requests are not tried.
const usualRequest = 1<<20 - 1

// noSession is the number of a session that no server has made: these numbers begin with that of the server and the time.
const noSession = 1

var (
	errHangsUp = errors.New("it hangs up on a handshake of any length")
	errUnclear = errors.New("it hung up on a handshake that it answered later")
)

// longest returns the length of the longest request that a server takes, or usualRequest if it takes requests of that length.
func longest(ctx context.Context, dial Dial) (int, error) {
	if ok, err := takes(ctx, dial, usualRequest); ok || err != nil {
		return usualRequest, err
	}
	taken, refused := len(handshake(0))-4, usualRequest
	if ok, err := takes(ctx, dial, taken); !ok {
		return 0, errors.Join(err, errHangsUp)
	}
	for refused-taken > 1 {
		n := (taken + refused) / 2
		switch ok, err := takes(ctx, dial, n); {
		case err != nil:
			return 0, err
		case ok:
			taken = n
		default:
			refused = n
		}
	}
	// A connection that was lost for another reason looks like a refusal.
	if ok, err := takes(ctx, dial, refused); ok || err != nil {
		return 0, errors.Join(err, errUnclear)
	}
	return taken, nil
}

// takes reports whether a server reads a request of n bytes. The error is that of dialling, or of ctx.
func takes(ctx context.Context, dial Dial, n int) (bool, error) {
	c, err := dial(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err = c.Write(handshake(n)); err == nil {
		_, err = visit.ReadFrame(c, longestAnswer)
	}
	return err == nil, ctx.Err()
}

// handshake returns a handshake of n bytes, or of the least number of bytes that it needs.
func handshake(n int) []byte {
	frame := visit.Hello{Timeout: time.Millisecond, Session: noSession}.Frame()
	if more := n - (len(frame) - 4); more > 0 {
		frame = append(frame, make([]byte, more)...)
		binary.BigEndian.PutUint32(frame, uint32(n))
	}
	return frame
}
