package core

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// script is the other side of a connection, of a session that has room for one call at a time.
type script struct {
	net.Conn
	s      *Session
	w      *wire.Conn
	served chan struct{} // closed when the connection has ended
}

func startScript(t *testing.T) *script {
	s := bareSession(t, newFakeConfig(t))
	s.cfg.window.Store(1)
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	p := &script{far, s, s.connection(near, logbook.Target{}), make(chan struct{})}
	if err := s.setWire(p.w, logbook.Target{}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.served)
		_ = p.w.Serve(s.hello())
	}()
	p.read()
	greeting := make([]byte, 36)
	binary.BigEndian.PutUint32(greeting[4:], 10_000)
	binary.BigEndian.PutUint64(greeting[8:], 7)
	binary.BigEndian.PutUint32(greeting[16:], 16)
	p.write(greeting)
	s.exists(context.Background(), "/first")(func(*zk.Stat, error) {}) // takes the room
	return p
}

func (p *script) write(frame []byte) {
	_, _ = p.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
}

func (p *script) read() []byte {
	var head [4]byte
	if _, err := io.ReadFull(p, head[:]); err != nil {
		return nil
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, _ = io.ReadFull(p, b)
	return b
}

// next returns the number of the next request of that kind, and reads on until then.
func (p *script) next(op int32) uint32 {
	for {
		if b := p.read(); b == nil || binary.BigEndian.Uint32(b[4:]) == uint32(op) {
			return binary.BigEndian.Uint32(b)
		}
	}
}

func (p *script) answer(xid uint32, code int32) {
	b := binary.BigEndian.AppendUint32(nil, xid)
	b = binary.BigEndian.AppendUint64(b, 1)
	p.write(binary.BigEndian.AppendUint32(b, uint32(code)))
}

// lose ends the session while calls wait for room, and the connection stays.
func (p *script) lose() {
	go func() { _, _ = io.Copy(io.Discard, p) }()
	synctest.Wait()
	p.s.lose(lossExpired)
	p.s.end()
	p.s.exists(context.Background(), "/wake")(func(*zk.Stat, error) {}) // the connection looks for what it can send
	synctest.Wait()
}

func (p *script) close() {
	p.w.Cut(net.ErrClosed)
	<-p.served
	p.w.Forsake()
}

// A watch that was not set because the session has ended says that. It is no answer.
func TestWatchAtLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startScript(t)
		w := p.s.startWatchIn(context.Background(), &p.s.watches.Data, hooks.RequestInfo{Op: "getData", Path: "/n"}, codec.OpGetData)
		p.lose()
		<-w.Ready()
		if _, _, err := w.Result(); !errors.Is(err, ErrLost) {
			t.Errorf("%v, want ErrLost", err)
		}
		p.close()
	})
}

// A create that was not sent tells nothing of containers.
func TestContainersAtLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startScript(t)
		ended := make(chan error, 1)
		go func() {
			_, err := p.s.createDirectory(context.Background(), "/dir")
			ended <- err
		}()
		p.lose()
		if err := <-ended; p.s.dialer.containers.known == present {
			t.Errorf("after %q, the servers are taken to have containers", err)
		}
		p.close()
	})
}

// A call that was not sent has not succeeded, even if its caller has not given up.
func TestNotSentIsNoSuccess(t *testing.T) {
	s := bareSession(t, newFakeConfig(t))
	never := func(done func(content, error)) { done(content{}, errNotSent) }
	if _, _, err := try(context.Background(), s, hooks.RequestInfo{Op: "getData"}, shared, never); err == nil {
		t.Error("no error")
	}
}

// A part of a multi that was refused takes part in no other, on the next connection neither.
func TestRefusedPartsAreCarriedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startScript(t)
		exists := p.next(codec.OpExists)
		for _, node := range []string{"/n", "/m", "/o"} {
			e := request(codec.OpDelete, node)
			e.Int32(anyVersion)
			p.s.callLasting(p.w, outbox.Call{Frame: e.Frame(), Done: func(outbox.Reply) {}, Batch: new(atomic.Int64)})
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // in a bubble
		p.answer(exists, codec.CodeNoNode)
		p.answer(p.next(codec.OpMulti), codec.CodeNoAuth)
		p.next(codec.OpDelete) // the first part, alone
		p.Close()
		p.close()
		if n := len(p.s.carried.all); n != 2 {
			t.Errorf("%d parts are carried, want 2", n)
		}
		for _, c := range p.s.carried.all {
			if c.Batch != nil {
				t.Error("a part may leave with others again")
			}
		}
	})
}
