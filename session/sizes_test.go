package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// The buffer for requests does not limit replies. Long queues have long lists of children, and
// other clients may have written as much as the server allows.
func TestLargeReplies(t *testing.T) {
	m := testserver.Connect(t, testserver.Server(t).ConnectString())
	s := testserver.Session(t, m)
	d, ctx := dir(t, s), patient(t)
	_, err := testserver.Admin(t).Create(d+"/big", make([]byte, 900<<10), 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	data, _, err := s.Get(ctx, d+"/big")
	must(t, err)
	if len(data) != 900<<10 {
		t.Errorf("%d bytes", len(data))
	}
	const batches, each = 6, 500
	for b := range batches {
		var ops []any
		for i := range each {
			ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("%s/%s%d-%d", d, strings.Repeat("x", 100), b, i)})
		}
		_, err := s.Multi(ctx, ops...)
		must(t, err)
	}
	names, _, err := s.Children(ctx, d) // some 350 KB
	must(t, err)
	if len(names) != batches*each+1 {
		t.Errorf("%d names", len(names))
	}
	for _, p := range []string{d + "/big"} {
		must(t, s.Delete(ctx, p, -1))
	}
}

// Every request that is accepted can be sent. Others are refused before anything is sent.
func TestLargeRequests(t *testing.T) {
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	d, ctx := dir(t, s), patient(t)
	longest := d + "/" + strings.Repeat("x", 16<<10-len(d)-1)
	most := 0
	for size := 300 << 10; ; size -= 1 << 10 {
		_, err := s.Create(ctx, longest, make([]byte, size), session.Persistent)
		if err == nil {
			most = size
			break
		}
		wantErr(t, fmt.Sprintf("create with %d bytes", size), err, session.ErrInvalid)
	}
	if most < 200<<10 {
		t.Errorf("at most %d bytes", most)
	}
	_, err := s.Set(ctx, longest, make([]byte, most), -1)
	must(t, err)
	_, err = s.Set(ctx, longest, make([]byte, 300<<10), -1)
	wantErr(t, "set", err, session.ErrInvalid)
	_, err = s.Multi(ctx, &zk.SetDataRequest{Path: longest, Data: make([]byte, 150<<10), Version: -1},
		&zk.SetDataRequest{Path: longest, Data: make([]byte, 150<<10), Version: -1})
	wantErr(t, "multi", err, session.ErrInvalid)
	most = 0
	for size := 300 << 10; most == 0; size -= 100 {
		_, err := s.Multi(ctx, &zk.DeleteRequest{Path: longest, Version: -1}, &zk.CreateRequest{Path: d + "/short", Data: make([]byte, size)})
		if err == nil {
			most = size
			break
		}
		wantErr(t, fmt.Sprintf("multi with %d bytes", size), err, session.ErrInvalid)
	}
	if most < 200<<10 {
		t.Errorf("at most %d bytes in a multi", most)
	}
}
