package queue_test

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// Nodes with a further prefix of a kind count as its contenders, and nodes with a prefix that it does not have do not.
func TestFurtherPrefixes(t *testing.T) {
	dir := persistentDir(t)
	put(t, dir, "__lock__-unused", "", 0)
	theirs := put(t, dir, "f81d4fae-theirs_", "", zk.FlagSequence)
	release(t, acquire(t, client(t, dir))) // a mutex that does not know them
	kind := queue.Mutex()
	kind.Prefixes = append(kind.Prefixes, "mine-", "theirs_")
	q, r := client(t, dir), queue.Request{Kind: kind}
	_, err := q.TryAcquire(patient(t), r)
	mustBe(t, err, queue.ErrBusy)
	all, err := q.Contenders(patient(t), kind)
	if err != nil || len(all) != 1 || all[0].Path != theirs || !all[0].Holder {
		t.Errorf("contenders: %+v, %v", all, err)
	}
	waits := begin(t, q, r)
	testserver.WaitChildren(t, dir, 3)
	waits.waits(t, "one of theirs holds")
	testserver.Delete(t, theirs)
	l := waits.get(t)
	if !strings.Contains(l.Path(), "-"+queue.PrefixLock) {
		t.Errorf("our node is %s", l.Path())
	}
	release(t, l)
}
