package core

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// listing answers a list with these names.
func (p *script) listing(xid uint32, names ...string) {
	b := binary.BigEndian.AppendUint32(nil, xid)
	b = binary.BigEndian.AppendUint64(b, 1)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(names)))
	for _, n := range names {
		b = binary.BigEndian.AppendUint32(b, uint32(len(n)))
		b = append(b, n...)
	}
	p.write(append(b, make([]byte, 68)...))
}

// The answer that sets a watch on the children is checked as every other list is.
func TestWatchedListIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startScript(t)
		w := p.s.startWatchIn(context.Background(), &p.s.watches.Children, hooks.RequestInfo{Op: "getChildren", Path: "/n"}, codec.OpGetChildren2)
		p.answer(p.next(codec.OpExists), codec.CodeNoNode)
		p.listing(p.next(codec.OpGetChildren2), "a/b")
		synctest.Wait()
		if p.w.Err() == nil {
			t.Errorf("a child called a/b is believed: the watch is %v", w.Event())
		}
		p.Close()
		<-p.served
		p.w.Forsake()
	})
}

// A List that joins the list of a WatchChildren is checked.
func TestJoinedListIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startScript(t)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		p.s.listing(ctx, "/n", false)(func(children, error) {})
		p.s.startWatchIn(context.Background(), &p.s.watches.Children, hooks.RequestInfo{Op: "getChildren", Path: "/n"}, codec.OpGetChildren2)
		var got []string
		var err error // of List
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, _, _, err = p.s.List(ctx, "/n")
		}()
		synctest.Wait()
		p.answer(p.next(codec.OpExists), codec.CodeNoNode)
		p.listing(p.next(codec.OpGetChildren2), "a")
		p.listing(p.next(codec.OpGetChildren2), "a/b")
		synctest.Wait()
		select {
		case <-done:
			t.Errorf("List returns %q, %v; connection: %v", got, err, p.w.Err())
		default:
		}
		cancel()
		p.Close()
		<-p.served
		p.w.Forsake()
		<-done
	})
}
