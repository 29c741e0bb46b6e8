package session_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest"
)

// noAuthOnce is a connection whose next exists is answered with "no auth" once it is armed.
type noAuthOnce struct {
	net.Conn
	armed *atomic.Bool
	xid   atomic.Int32 // of the exists; 0: there was none
	out   []byte       // what was written of a frame
	in    []byte       // what was not read of a frame
}

func (c *noAuthOnce) Write(b []byte) (int, error) {
	c.out = append(c.out, b...)
	for len(c.out) >= 4 {
		end := 4 + int(binary.BigEndian.Uint32(c.out))
		if len(c.out) < end {
			break
		}
		if f := c.out[:end]; end >= 12 && codec.Op(f) == codec.OpExists && c.armed.CompareAndSwap(true, false) {
			c.xid.Store(codec.Xid(f))
		}
		c.out = c.out[end:]
	}
	return c.Conn.Write(b)
}

func (c *noAuthOnce) Read(b []byte) (int, error) {
	if len(c.in) == 0 {
		head := make([]byte, 4)
		if _, err := io.ReadFull(c.Conn, head); err != nil {
			return 0, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(c.Conn, body); err != nil {
			return 0, err
		}
		if xid := c.xid.Load(); xid != 0 && int32(binary.BigEndian.Uint32(body)) == xid {
			noAuth := int32(codec.CodeNoAuth)
			body = binary.BigEndian.AppendUint32(body[:12:12], uint32(noAuth))
			binary.BigEndian.PutUint32(head, uint32(len(body)))
		}
		c.in = append(head, body...)
	}
	n := copy(b, c.in)
	c.in = c.in[n:]
	return n, nil
}

// While the search for the node of a cancelled Enter is refused, an Enter of the same name says so at once. The search does not
// take the node of the Enter that succeeds at last for the one that it looks for.
func TestRefusedSearchSparesNextNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var armed atomic.Bool
		srv := zktest.Start(t)
		e := &entering{faulty: srv, t: t, d: "/p/d"}
		e.m, e.s = virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := srv.Dialer()(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &noAuthOnce{Conn: c, armed: &armed}, nil
		})
		_, e.other = virtually(t, "h:1", srv.Dialer())
		must(t, makeDir(t.Context(), e.other, e.d))
		f := srv.CutBefore(zktest.On(zktest.OpCreate, e.d+"/"))
		srv.Refuse(true)
		ctx, cancel := context.WithCancel(t.Context())
		ended := e.begin(ctx, e.form(true))
		<-f.Hit()
		cancel()
		wantErr(t, "Enter", (<-ended).err, context.Canceled)
		armed.Store(true)
		srv.Refuse(false)
		_, err := e.s.Enter(t.Context(), e.form(true))
		wantErr(t, "the next Enter", err, zk.ErrNoAuth)
		n := e.whenFree(e.form(true))
		if armed.Load() {
			t.Error("no search was refused")
		}
		time.Sleep(10 * time.Second) //nolint:forbidigo // in a bubble
		e.wantOwner(e.s)
		e.removes(n)
	})
}
