package ensembles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// longestTimeout is the longest session timeout of the clients in these tests.
const longestTimeout = 6 * time.Second

// fence is a token as a store keeps it: a generation, which operators raise, and the token of the lock.
type fence struct {
	generation int
	token      int64
}

func (f fence) less(g fence) bool {
	return f.generation < g.generation || f.generation == g.generation && f.token < g.token
}

// accepts is a write to a store. The store refuses a fence that is lower than the highest it has seen.
func (f *fence) accepts(g fence) bool {
	if g.less(*f) {
		return false
	}
	*f = g
	return true
}

// restoration is an ensemble that is restored by the runbook in docs/operations.md.
type restoration struct {
	*testing.T
	e     *zktest.Ensemble
	ctx   context.Context
	door  *zktest.Proxy // that all clients go through
	store fence
}

func newRestoration(t *testing.T, servers int) *restoration {
	t.Helper()
	longtest.Only(t)
	e := zktest.StartReal(t, zktest.Nodes(servers), zktest.TickTime(tick))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return &restoration{T: t, e: e, ctx: ctx, door: zktest.StartProxy(t, e.Addr(0))}
}

func (r *restoration) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// client returns a manager, and a lock at /restored/name.
func (r *restoration) client(name string) (*session.Manager, *zklock.Mutex) {
	r.Helper()
	m, err := session.Connect(r.ctx, r.door.Addr(), session.WithTimeout(longestTimeout),
		session.WithLogger(slog.New(slog.DiscardHandler)))
	r.must(err)
	r.Cleanup(func() { m.Close() })
	mx, err := zklock.New(m, "/restored/"+name)
	r.must(err)
	return m, mx
}

// take takes a lock, and writes to the store.
func (r *restoration) take(mx *zklock.Mutex, generation int) (*queue.Lease, fence) {
	r.Helper()
	lease, err := mx.Acquire(r.ctx)
	r.must(err)
	token, err := lease.Token(r.ctx)
	r.must(err)
	f := fence{generation, token}
	if before := r.store; !r.store.accepts(f) {
		r.Errorf("the store refuses %+v after %+v", f, before)
	}
	return lease, f
}

// use takes a lock and gives it back so many times.
func (r *restoration) use(mx *zklock.Mutex, times int) {
	r.Helper()
	for range times {
		lease, _ := r.take(mx, 0)
		r.must(lease.Release(r.ctx))
	}
}

// data returns the directory with the snapshots and logs of a server. It must be running.
func (r *restoration) data(i int) string {
	r.Helper()
	text, err := r.e.Word(r.ctx, i, "conf")
	r.must(err)
	found := regexp.MustCompile(`(?m)^dataDir=(.*)$`).FindStringSubmatch(text)
	if found == nil {
		r.Fatalf("server %d does not say where its data is: %s", i, text)
	}
	return strings.TrimSuffix(found[1], "/version-2") + "/version-2"
}

// allData returns the directories of all servers.
func (r *restoration) allData() []string {
	r.Helper()
	var out []string
	for i := range r.e.Len() {
		out = append(out, r.data(i))
	}
	return out
}

func (r *restoration) stopAll() {
	r.Helper()
	for i := range r.e.Len() {
		r.must(r.e.Stop(i))
	}
}

func (r *restoration) startAll() {
	r.Helper()
	for i := range r.e.Len() {
		r.must(r.e.Launch(i))
	}
	r.must(r.e.WaitReady(r.ctx))
}

// zxid returns the last transaction that any server has, as the command srvr says.
func (r *restoration) zxid() int64 {
	r.Helper()
	var highest int64
	for i := range r.e.Len() {
		text, err := r.e.Word(r.ctx, i, "srvr")
		r.must(err)
		highest = max(highest, r.hex(text, "Zxid: "))
	}
	return highest
}

// hex returns the number that follows a text.
func (r *restoration) hex(text, before string) int64 {
	r.Helper()
	found := regexp.MustCompile(`(?m)^` + before + `0x([0-9a-f]+)\s*$`).FindStringSubmatch(text)
	if found == nil {
		r.Fatalf("no %q in %s", before, text)
	}
	n, err := strconv.ParseInt(found[1], 16, 64)
	r.must(err)
	return n
}

// cZxid makes a node with zkCli.sh, and returns its cZxid.
func (r *restoration) cZxid(path string) int64 {
	r.Helper()
	r.zkCli("create", path)
	n := r.hex(r.zkCli("stat", path), "cZxid = ")
	r.zkCli("delete", path)
	return n
}

func (r *restoration) zkCli(args ...string) string {
	r.Helper()
	var script string
	for _, home := range []string{"/usr/share/zookeeper", os.Getenv("ZOOKEEPER_HOME")} { // Debian's, unless the other has one
		file := filepath.Join(home, "bin", "zkCli.sh")
		if _, err := os.Stat(file); err == nil && home != "" {
			script = file
		}
	}
	if script == "" {
		testserver.Missing(r.T, errors.New("there is no zkCli.sh"))
	}
	out, err := exec.CommandContext(r.ctx, script, append([]string{"-server", r.e.Addr(0)}, args...)...).CombinedOutput()
	if err != nil {
		r.Fatalf("zkCli.sh %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// lostAfterBackup takes locks, has replace put older data or none onto the servers, and follows the runbook up to step 5.
// It returns the number of step 2, the cZxid of step 5, and the fence of a client that was cut off while it held.
func (r *restoration) lostAfterBackup(replace func(backup string, data []string)) (number, cZxid int64, former fence) {
	r.Helper()
	_, mx := r.client("a")
	r.use(mx, 10)
	_, other := r.client("b")
	resurrected, _ := r.take(other, 0) // its node is in the backup
	data := r.allData()
	r.stopAll()
	backup := filepath.Join(r.TempDir(), "backup")
	r.must(os.CopyFS(backup, os.DirFS(data[0])))
	r.startAll()
	if err := resurrected.Release(r.ctx); err != nil && !errors.Is(err, session.ErrLost) { // a busy machine starts servers slowly
		r.Fatal(err)
	}
	r.use(mx, 50)
	lease, former := r.take(mx, 0)

	r.door.Refuse(true) // 1
	r.door.Disconnect()
	cut := time.Now()
	number = r.zxid() // 2
	if number < r.store.token {
		r.Errorf("the servers say that %d is their last transaction, and the store has seen token %d", number, r.store.token)
	}
	pause(r.ctx, time.Until(cut.Add(longestTimeout))) // 3
	if err := lease.Err(); !errors.Is(err, session.ErrLost) {
		r.Errorf("a session timeout after it was cut off, the holder's lease says %v, want ErrLost", err)
	}
	r.stopAll() // 4
	replace(backup, data)
	r.startAll()
	cZxid = r.cZxid("/above") // 5
	r.Logf("%d servers: token %d (%#[2]x) is the highest of the store, %#x is the last transaction, and the new node has %#x",
		r.e.Len(), r.store.token, number, cZxid)
	return number, cZxid, former
}

// again lets the clients in, and has a client take both locks.
func (r *restoration) again(generation int, former fence) {
	r.Helper()
	r.door.Heal() // 7
	for _, name := range []string{"a", "b"} {
		_, mx := r.client(name)
		lease, f := r.take(mx, generation)
		r.Logf("the next holder of %s has %+v", name, f)
		r.must(lease.Release(r.ctx))
	}
	if r.store.accepts(former) {
		r.Errorf("the store accepts the former holder's %+v after %+v", former, r.store)
	}
}

// put makes the data of all servers that of the backup.
func (r *restoration) put(backup string, data []string) {
	r.Helper()
	for _, dir := range data {
		r.must(os.RemoveAll(dir))
		r.must(os.CopyFS(dir, os.DirFS(backup)))
	}
}

// One server has older data. Its numbers go on from there, so the stores and the clients need a new generation.
func TestRestoredAlone(t *testing.T) {
	r := newRestoration(t, 1)
	number, cZxid, former := r.lostAfterBackup(r.put)
	if cZxid > number {
		t.Errorf("cZxid %#x is above %#x, so this shows nothing", cZxid, number)
	}
	r.store = fence{generation: r.store.generation + 1} // 6
	if r.store.accepts(former) {
		t.Errorf("the store accepts the former holder's %+v after %+v", former, r.store)
	}
	r.again(r.store.generation, former)
}

// Three servers have older data. Each election raises their numbers above all of the epoch before.
func TestRestored(t *testing.T) {
	r := newRestoration(t, 3)
	number, cZxid, former := r.lostAfterBackup(r.put)
	elections := 0
	for ; cZxid <= number; cZxid = r.cZxid("/above") { // 6
		if elections++; elections > 5 {
			t.Fatalf("after %d elections cZxid is %#x, and not above %#x", elections, cZxid, number)
		}
		leader, err := r.e.Leader(r.ctx)
		r.must(err)
		r.must(r.e.Stop(leader))
		r.must(r.e.Start(r.ctx, leader))
		r.must(r.e.WaitReady(r.ctx))
	}
	t.Logf("%d elections", elections)
	r.again(0, former)
}

// Three servers have older data, or none. Files with the epoch make their numbers go on above those of before.
func TestRestoredEpoch(t *testing.T) {
	for _, wiped := range []bool{false, true} {
		t.Run(fmt.Sprint("wiped ", wiped), func(t *testing.T) {
			r := newRestoration(t, 3)
			replace := r.put
			if wiped {
				replace = func(_ string, data []string) {
					for _, dir := range data {
						r.must(os.RemoveAll(dir))
					}
				}
			}
			number, cZxid, former := r.lostAfterBackup(replace)
			if cZxid > number {
				t.Errorf("cZxid %#x is above %#x, so this shows nothing", cZxid, number)
			}
			data := r.allData()
			r.stopAll() // 6
			for _, dir := range data {
				for _, file := range []string{"currentEpoch", "acceptedEpoch"} {
					r.must(os.WriteFile(filepath.Join(dir, file), fmt.Appendln(nil, number>>32), 0o600))
				}
			}
			r.startAll()
			if cZxid := r.cZxid("/above"); cZxid <= number {
				t.Fatalf("with the epoch in the files cZxid is %#x, and not above %#x", cZxid, number)
			}
			r.again(0, former)
		})
	}
}
