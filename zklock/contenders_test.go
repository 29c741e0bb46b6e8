package zklock_test

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// Contenders shows the holder and the waiters, in order, with the data of their nodes.
func TestContenders(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	watcher := newMutex(t, connect(t), dir)
	all, err := watcher.Contenders(ctx)
	if !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("contenders of a lock that was never taken: %v, %v, want %v", all, err, zk.ErrNoNode)
	}
	first := newMutex(t, connect(t), dir)
	must(t, first.Lock(ctx))
	second := newMutex(t, connect(t), dir)
	third := newMutex(t, connect(t), dir)
	var entered []<-chan error
	for i, mx := range []*zklock.Mutex{second, third} {
		entered = append(entered, background(func() error { return mx.Lock(ctx) }))
		testserver.WaitChildren(t, dir, i+2)
	}
	all, err = watcher.Contenders(ctx)
	must(t, err)
	for i, data := range []string{"first", ""} { // of other clients
		write(t, all[i].Path, data)
	}
	all, err = watcher.Contenders(ctx)
	must(t, err)
	if len(all) != 3 {
		t.Fatalf("%d contenders: %+v", len(all), all)
	}
	for i, c := range all {
		n, ok := queue.ParseNode(path.Base(c.Path))
		if !ok || n.Sequence != c.Sequence || path.Dir(c.Path) != dir {
			t.Errorf("contender %d: %+v", i, c)
		}
		if c.Holder != (i == 0) || i > 0 && c.Sequence <= all[i-1].Sequence {
			t.Errorf("contender %d of %d: %+v", i, len(all), c)
		}
	}
	if got := string(all[0].Data); got != "first" {
		t.Errorf("data of the first: %q", got)
	}
	if len(all[1].Data) != 0 {
		t.Errorf("data of the second: %q", all[1].Data)
	}
	var data struct{ ID string }
	must(t, json.Unmarshal(all[2].Data, &data))
	if _, pid, _ := strings.Cut(data.ID, "/"); pid != strconv.Itoa(os.Getpid()) {
		t.Errorf("default data: %s", all[2].Data)
	}
	for i, mx := range []*zklock.Mutex{first, second} {
		must(t, mx.Unlock())
		must(t, receive(t, "the next", entered[i]))
	}
	must(t, third.Unlock())
}

// Children that are no contenders are ignored. A contender of another kind of lock is a conflict, and a
// try leaves nothing beside it.
func TestForeignChildren(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir)
	admin := testserver.Admin(t)
	for _, name := range []string{"", "readme", "block-0000000000", "lock-x"} {
		if _, err := admin.Create(path.Join(dir, name), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(name, err)
		}
	}
	must(t, mx.Lock(ctx))
	must(t, mx.Unlock())
	if _, err := admin.Create(dir+"/lease-0000000000", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Lock", mx.Lock(ctx), queue.ErrConflict)
	got, err := mx.TryLock(ctx)
	wantErr(t, "TryLock", err, queue.ErrConflict)
	if got || mx.Held() {
		t.Error("held beside another kind of lock")
	}
	_, err = mx.Contenders(ctx)
	wantErr(t, "Contenders", err, queue.ErrConflict)
	testserver.WaitChildren(t, dir, 4)
}
