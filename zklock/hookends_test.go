package zklock_test

import (
	"bytes"
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func thisGoroutine() string {
	buf := make([]byte, 64)
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte(" ["))
	return string(head)
}

// The session ends while a Do holds the lock. The goroutine of the Do is the first to look at the lease after
// that, when it gives the lease back. So the Loss hook runs in that goroutine, and ends it. The Mutex can be
// locked all the same.
func TestLossHookEndsDo(t *testing.T) {
	server := zktest.Start(t)
	var caller atomic.Value
	caller.Store("")
	var struck atomic.Bool
	m := testserver.Connect(t, server.ConnectString(), session.WithTrace(session.Trace{
		Loss: func(context.Context, session.HoldInfo, error) {
			if caller.Load() == thisGoroutine() {
				struck.Store(true)
				runtime.Goexit()
			}
		},
	}))
	mx := newMutex(t, m, "/mutex")
	for range 1000 { // one try of ten strikes
		ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
		done := make(chan struct{})
		go func() {
			defer close(done)
			caller.Store(thisGoroutine())
			_ = mx.Do(ctx, func(context.Context) error {
				s, err := m.Session(ctx)
				if err != nil {
					return err
				}
				go func() { _ = server.Expire(ctx, s.ID()) }()
				for s.Err() == nil && ctx.Err() == nil {
					runtime.Gosched()
				}
				return nil
			})
		}()
		<-done
		caller.Store("")
		if !struck.Load() {
			cancel()
			continue
		}
		if err := mx.Lock(patient(t)); err != nil {
			t.Errorf("the lock is free, but cannot be taken: %v", err)
		} else {
			_ = mx.Unlock()
		}
		cancel()
		return
	}
	t.Error("the caller was never the first to see the loss")
}
