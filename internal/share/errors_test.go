package share_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// errLoss is the error of a lost lease, and lossText that of the Do which held it.
var errLoss error = &queue.OpError{Op: "lock", Path: "/a", Err: fmt.Errorf("session 0x1: %w: expired", session.ErrLost)}

const lossText = "unlock /a: session 0x1: lost: expired"

// doLost returns the error of a Do whose lock is lost while its function runs. outside is the context of the caller.
func doLost(outside context.Context, work func() error) error {
	h := &share.Holds[*lease]{Path: "/a", Slot: true}
	l := &lease{}
	return h.Do(outside, get(l), func(context.Context) error {
		l.lose(errLoss)
		return work()
	})
}

// The error of a Do that lost its lock matches the loss and the function's error, but not the end of a context that was due
// to the loss. It is one line.
func TestErrorOfLostDo(t *testing.T) {
	errWork := errors.New("disk full")
	for name, c := range map[string]struct {
		work  error
		is    []error
		isNot []error
		text  string
	}{
		"nil":             {nil, nil, []error{context.Canceled}, lossText},
		"ctx.Err":         {context.Canceled, nil, []error{context.Canceled}, lossText},
		"deadline":        {context.DeadlineExceeded, nil, []error{context.DeadlineExceeded}, lossText},
		"cause":           {errLoss, nil, []error{context.Canceled}, lossText},
		"another error":   {errWork, []error{errWork}, []error{context.Canceled}, lossText + "; disk full"},
		"wrapped ctx.Err": {fmt.Errorf("step 3: %w", context.Canceled), nil, []error{context.Canceled}, lossText + "; step 3: context canceled"},
		"wrapped deadline": {
			fmt.Errorf("step 3: %w", context.DeadlineExceeded), nil, []error{context.DeadlineExceeded},
			lossText + "; step 3: context deadline exceeded",
		},
		"wrapped cause": {fmt.Errorf("step 3: %w", errLoss), nil, []error{context.Canceled}, "step 3: " + errLoss.Error()},
		"joined": {errors.Join(context.Canceled, errWork), []error{errWork}, []error{context.Canceled},
			lossText + "; context canceled; disk full"},
		"of the network": {&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, []error{os.ErrDeadlineExceeded},
			[]error{context.DeadlineExceeded}, lossText + "; read tcp: i/o timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			err := doLost(context.Background(), func() error { return c.work })
			for _, target := range append(c.is, session.ErrLost, errLoss) {
				wantErr(t, "Do", err, target)
			}
			for _, target := range c.isNot {
				if errors.Is(err, target) {
					t.Errorf("Do: error %v matches %q", err, target)
				}
			}
			if isNet := errors.As(err, new(net.Error)); isNet != (name == "of the network") { // the end of a context is a net.Error
				t.Errorf("Do: error %v is a net.Error: %v", err, isNet)
			}
			if err.Error() != c.text {
				t.Errorf("Do: error\n%s, want\n%s", err, c.text)
			}
		})
	}
}

// If the caller's context has ended too, the error matches that.
func TestErrorOfLostDoCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := doLost(ctx, func() error {
		cancel()
		return fmt.Errorf("step 3: %w", context.Canceled)
	})
	wantErr(t, "Do", err, session.ErrLost)
	wantErr(t, "Do", err, context.Canceled)
}

// Without a loss the function's error stays as it is.
func TestErrorOfDoWithoutLoss(t *testing.T) {
	h := &share.Holds[*lease]{Path: "/a", Slot: true}
	work := fmt.Errorf("step 3: %w", context.Canceled)
	if err := h.Do(context.Background(), get(&lease{}), func(context.Context) error { return work }); err != work {
		t.Errorf("Do: error %v, want %v", err, work)
	}
}

// Joined errors are one line, which says each thing once.
func TestJoin(t *testing.T) {
	if err := share.Join(nil, nil); err != nil {
		t.Errorf("Join of nothing: %v", err)
	}
	if err := share.Join(nil, errLoss); err != errLoss {
		t.Errorf("Join of one: %v", err)
	}
	err := share.Join(errLoss, nil, zk.ErrNoAuth, errLoss, errors.Join(zk.ErrNoNode, zk.ErrClosing))
	for _, target := range []error{session.ErrLost, zk.ErrNoAuth, zk.ErrNoNode, zk.ErrClosing} {
		wantErr(t, "Join", err, target)
	}
	if strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), errLoss.Error()) != 1 {
		t.Errorf("Join: %q", err)
	}
}
