//go:build linux

package nemesis

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// These schedules restore servers from a backup, or wipe them, by the runbook in docs/operations.md.
var backupSchedules = []schedule{
	{group: "backups", name: "one server restored", beside: true, run: func(t *trial) { restored(t, 1, false) }},
	{group: "backups", name: "the epoch in files", beside: true, run: func(t *trial) { restored(t, voters, false) }},
	{group: "backups", name: "the epoch in files of wiped servers", beside: true, run: func(t *trial) { restored(t, voters, true) }},
}

// backupTimeout is the longest session timeout of the clients in these schedules.
const backupTimeout = 6 * time.Second

// fence is a token as a store keeps it: a generation, which operators raise, and the token of the lock.
type fence struct {
	generation int
	token      int64
}

// accepts is a write to a store. The store refuses a fence that is lower than the highest it has seen.
func (f *fence) accepts(g fence) bool {
	if g.generation < f.generation || g.generation == f.generation && g.token < f.token {
		return false
	}
	*f = g
	return true
}

// restoration is an ensemble that is restored by the runbook.
type restoration struct {
	*lab
	door  *zktest.Proxy // that all clients go through
	store fence
}

func newRestoration(t *trial, servers int) *restoration {
	t.Helper()
	l := newLab(t, servers)
	return &restoration{lab: l, door: zktest.StartProxy(t, l.Addr(0))}
}

// client returns the lock at /restored/name of a client.
func (r *restoration) client(name string) *zklock.Mutex {
	r.Helper()
	return r.mutex(r.door.Addr(), "/restored/"+name, backupTimeout)
}

// write takes a lock, and writes to the store.
func (r *restoration) write(mx *zklock.Mutex, generation int) (*held, fence) {
	r.Helper()
	h, token := r.take(mx)
	f := fence{generation, token}
	if before := r.store; !r.store.accepts(f) {
		r.Errorf("the store refuses %+v after %+v", f, before)
	}
	return h, f
}

// use takes a lock and gives it back so many times.
func (r *restoration) use(mx *zklock.Mutex, times int) {
	r.Helper()
	for range times {
		h, _ := r.write(mx, 0)
		r.must(h.release())
	}
}

// data returns the directories with the snapshots and logs of all servers. These must be running.
func (r *restoration) data() (dirs []string) {
	r.Helper()
	for i := range r.Len() {
		dirs = append(dirs, filepath.Join(r.dataDir(i), "version-2"))
	}
	return dirs
}

func (r *restoration) startAll() {
	r.Helper()
	r.all(r.Launch)
	r.must(r.WaitReady(r.ctx))
}

// zxid returns the last transaction that any server has, as the command srvr says.
func (r *restoration) zxid() (highest int64) {
	r.Helper()
	for i := range r.Len() {
		text, err := r.Word(r.ctx, i, "srvr")
		r.must(err)
		_, after, _ := strings.Cut(text, "Zxid: ")
		line, _, _ := strings.Cut(after, "\n")
		n, err := strconv.ParseInt(strings.TrimSpace(line), 0, 64)
		r.must(err)
		highest = max(highest, n)
	}
	return highest
}

// cZxid makes a node, and returns its cZxid.
func (r *restoration) cZxid() int64 {
	r.Helper()
	conn := r.plain(0)
	_, err := conn.Create("/above", nil, 0, zk.WorldACL(zk.PermAll))
	r.must(err)
	_, stat, err := conn.Exists("/above")
	r.must(err)
	r.must(conn.Delete("/above", -1))
	return stat.Czxid
}

// lostAfterBackup takes locks, puts the data of a backup onto the servers, or none, and follows the runbook up to step 5.
// It returns the number of step 2, the cZxid of step 5, and the fence of a client that was cut off while it held.
func (r *restoration) lostAfterBackup(wipe bool) (number, cZxid int64, former fence) {
	r.Helper()
	mx := r.client("a")
	r.use(mx, 10)
	resurrected, _ := r.write(r.client("b"), 0) // its node is in the backup
	data := r.data()
	r.all(r.Stop)
	backup := filepath.Join(r.TempDir(), "backup")
	r.must(os.CopyFS(backup, os.DirFS(data[0])))
	r.startAll()
	if err := resurrected.release(); err != nil && !errors.Is(err, session.ErrLost) { // a busy machine starts servers slowly
		r.Fatal(err)
	}
	r.use(mx, 50)
	last, former := r.write(mx, 0)

	r.door.Refuse(true) // 1
	r.door.Disconnect()
	cut := time.Now()
	number = r.zxid() // 2
	if number < r.store.token {
		r.Errorf("the servers say that %d is their last transaction, and the store has seen token %d", number, r.store.token)
	}
	pause(r.ctx, time.Until(cut.Add(backupTimeout))) // 3
	if err := last.Err(); !errors.Is(err, session.ErrLost) {
		r.Errorf("a session timeout after it was cut off, the holder's lease says %v, want ErrLost", err)
	}
	r.all(r.Stop) // 4
	r.faults++
	for _, dir := range data {
		r.must(os.RemoveAll(dir))
		if !wipe {
			r.must(os.CopyFS(dir, os.DirFS(backup)))
		}
	}
	r.startAll()
	cZxid = r.cZxid() // 5
	r.figure("token %d (%#[1]x) was the highest of the store, %#x the last transaction, and the new node has %#x",
		r.store.token, number, cZxid)
	return number, cZxid, former
}

// One server has older data. Its numbers go on from there, so the stores and the clients need a new generation. Or several
// servers have older data, or none. Files with the epoch make their numbers go on above those of before.
func restored(t *trial, servers int, wipe bool) {
	r := newRestoration(t, servers)
	number, cZxid, former := r.lostAfterBackup(wipe)
	if cZxid > number {
		t.Errorf("cZxid %#x is above %#x, so this shows nothing", cZxid, number)
	}
	if servers == 1 {
		r.store = fence{generation: 1} // 6
	} else {
		data := r.data()
		r.all(r.Stop) // 6
		for _, dir := range data {
			for _, file := range []string{"currentEpoch", "acceptedEpoch"} {
				r.must(os.WriteFile(filepath.Join(dir, file), fmt.Appendln(nil, number>>32), 0o600))
			}
		}
		r.startAll()
		if cZxid := r.cZxid(); cZxid <= number {
			t.Fatalf("with the epoch in the files cZxid is %#x, and not above %#x", cZxid, number)
		}
	}
	r.door.Heal() // 7
	for _, name := range []string{"a", "b"} {
		h, f := r.write(r.client(name), r.store.generation)
		r.figure("the next holder of %s has %+v", name, f)
		r.must(h.release())
	}
	if r.store.accepts(former) {
		r.Errorf("the store accepts the former holder's %+v after %+v", former, r.store)
	}
	r.judge("a mutex", r.store.generation > 0)
}
