//go:build linux

package nemesis

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// These are schedules of disks that are slow, full, or lose what was not synced. Servers load a small library in C
// (testdata/disk.c) ahead of the C library.
//
// The library notes how far each file of a server was written when it was last synced. A power cut kills servers
// with SIGKILL, and then cuts their transaction logs to what was synced. That is the worst that a disk may do which
// keeps its word: usually the kernel has written more. Snapshots are kept, as if the kernel had written them: a
// server that has a log and no snapshot does not start.
//
// With forceSync=no ZooKeeper never syncs its log. ZooKeeper promises nothing then, and neither do the locks. The
// schedules assert what goes wrong, so that docs/reliability.md can say it.
var diskSchedules = []schedule{
	{group: "disks", name: "still until the holder has lost", beside: true, run: func(t *trial) { noQuorumOfDisks(t, false, false) }},
	{group: "disks", name: "still until no server leads", beside: true, run: func(t *trial) { noQuorumOfDisks(t, false, true) }},
	{group: "disks", name: "that of a follower full", beside: true, run: func(t *trial) { diskFull(t, false) }},
	{group: "disks", name: "that of the leader full", beside: true, run: func(t *trial) { diskFull(t, true) }},
	{group: "disks", name: "all full", beside: true, run: func(t *trial) { noQuorumOfDisks(t, true, false) }},
	{group: "disks", name: "power cut", short: true, beside: true, run: func(t *trial) { tokenAfterPowerCut(t, "yes") }},
	{group: "disks", name: "power cut unsynced", beside: true, run: func(t *trial) { tokenAfterPowerCut(t, "no") }},
	{group: "disks", name: "power cut while cut off", beside: true, run: func(t *trial) { holderAfterPowerCut(t, "yes", 10*time.Second) }},
	{group: "disks", name: "power cut while cut off unsynced", beside: true, run: func(t *trial) { holderAfterPowerCut(t, "no", 40*time.Second) }},
}

const diskLock = "/disks/lock"

// diskLab is a lab whose servers have disks that can be made bad.
type diskLab struct {
	*lab
	disks []disk
}

func newDiskLab(t *trial, servers int, opts ...zktest.RealOption) *diskLab {
	t.Helper()
	l := &diskLab{lab: newLab(t, servers, append([]zktest.RealOption{
		zktest.Environ("LD_PRELOAD", diskLibrary(t.T)),
		zktest.Property("forceSync", "yes"), // ZooKeeper's default, and not that of zktest
	}, opts...)...)}
	for i := range servers {
		l.disks = append(l.disks, disk{filepath.Dir(l.dataDir(i))})
	}
	return l
}

// dataDir returns where a server has its data. It must be running.
func (l *lab) dataDir(i int) string {
	l.Helper()
	text, err := l.Word(l.ctx, i, "conf")
	l.must(err)
	found := regexp.MustCompile(`(?m)^dataDir=(.*?)(/version-2)?$`).FindStringSubmatch(text)
	if found == nil {
		l.Fatalf("server %d does not say where its data is: %s", i, text)
	}
	return found[1]
}

// diskLibrary builds the library that servers load, and returns its name.
func diskLibrary(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		testserver.Missing(t, err)
	}
	name := filepath.Join(t.TempDir(), "disk.so")
	build := exec.Command(compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", name,
		filepath.Join("testdata", "disk.c"), "-ldl", "-lpthread")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return name
}

// disk is what a server has its data on. All methods but cutPower may be called while the server runs.
type disk struct{ dir string }

// set writes a number that the library reads before each sync and each write: "slow" has each sync take so many
// milliseconds longer, and "full" has writes fail after so many more bytes.
func (d disk) set(what string, n int64) error {
	next := filepath.Join(d.dir, what+".next")
	return errors.Join(os.WriteFile(next, []byte(strconv.FormatInt(n, 10)), 0o600), os.Rename(next, filepath.Join(d.dir, what)))
}

// well ends slow and full.
func (l *diskLab) well() {
	l.Helper()
	for _, d := range l.disks {
		for _, what := range []string{"slow", "full"} {
			if err := os.Remove(filepath.Join(d.dir, what)); !errors.Is(err, fs.ErrNotExist) {
				l.must(err)
			}
		}
	}
}

// cutPower kills all servers at once, drops what they have not synced, and starts them again.
func (l *diskLab) cutPower() {
	l.Helper()
	l.faults++
	l.all(l.Kill)
	for _, d := range l.disks {
		l.must(d.cutPower())
	}
	l.all(l.Launch)
	l.must(l.WaitReady(l.ctx))
}

// cutPower makes zeros of what the server's logs had not synced, as ZooKeeper has extended the files with.
func (d disk) cutPower() error {
	logs, err := filepath.Glob(filepath.Join(d.dir, "data", "version-2", "log.*"))
	for _, log := range logs {
		text, errRead := os.ReadFile(filepath.Join(d.dir, "synced", filepath.Base(log)))
		if errors.Is(errRead, fs.ErrNotExist) {
			err = errors.Join(err, os.Remove(log))
			continue
		}
		synced, errParse := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		info, errStat := os.Stat(log)
		if err = errors.Join(err, errRead, errParse, errStat); err != nil {
			return err
		}
		if info.Size() > synced {
			err = errors.Join(os.Truncate(log, synced), os.Truncate(log, info.Size()))
		}
	}
	return err
}

// comeBack waits until all servers serve again, and starts those whose process has ended. It returns how many had.
func (l *diskLab) comeBack() int {
	l.Helper()
	l.well()
	ended := make(map[int]bool)
	l.eventually("all servers to serve again", func() bool {
		serving := 0
		for i := range l.disks {
			if l.Launch(i) == nil { // it is an error while the process runs
				ended[i] = true
			}
			if _, err := l.Metrics(l.ctx, i); err == nil {
				serving++
			}
		}
		return serving == len(l.disks)
	})
	return len(ended)
}

// write creates nodes until one fails.
func (l *diskLab) write(server int) {
	l.Helper()
	conn := l.plain(server)
	for n := 0; ; n++ {
		if _, err := conn.Create(fmt.Sprintf("/written-%d", n), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			return
		}
	}
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// The disks of a quorum stand still, or those of all servers get full. The holder loses its lock in time, and nobody gets
// it. When the disks are well again, also if the leader has given up meanwhile, the waiter gets it.
func noQuorumOfDisks(t *trial, full, untilNoLeader bool) {
	const timeout = 6 * time.Second
	l := newDiskLab(t, voters)
	holder, rival := l.pair(l.ConnectString(), diskLock, timeout)
	leader := l.leader()
	for i, d := range l.disks {
		switch {
		case full:
			l.must(d.set("full", 1000))
		case i != leader:
			l.must(d.set("slow", time.Hour.Milliseconds()))
		default:
			continue
		}
		l.faults++
	}
	if full {
		l.write(0)
	}
	l.loses(holder, timeout)
	if untilNoLeader {
		l.eventually("the leader to give up", func() bool {
			_, err := l.Leader(l.ctx)
			return err != nil
		})
	}
	l.mustWait(rival, "no quorum can agree")
	well := time.Now()
	ended := l.comeBack()
	l.gets(rival)
	l.figure("%d processes ended, handed over %v after all was well", ended, ms(rival.at.Sub(well)))
	l.judge("a mutex", false)
}

// The disk of one server gets full in the middle of a write. The server stops serving. A client that may use
// the other servers gives its lock back there, and the waiter gets it. A client of that server alone loses
// its lock before the servers give it to a waiter. When there is room again the server comes back.
func diskFull(t *trial, leads bool) {
	const timeout = 10 * time.Second
	l := newDiskLab(t, voters)
	at := l.leader()
	if !leads {
		at = (at + 1) % voters
	}
	holder, rival := l.pair(l.ConnectString(), diskLock, timeout)
	_, rivalOfAlone := l.pair(l.Addr(at), "/disks/another", timeout)
	l.faults++
	l.must(l.disks[at].set("full", 300))
	began := time.Now()
	l.write(at)
	l.eventually("the server to stop serving", func() bool {
		_, err := l.Metrics(l.ctx, at)
		return err != nil
	})
	released := holder.release()
	l.gets(rival)
	l.gets(rivalOfAlone)
	ended := l.comeBack()
	l.figure("%d processes ended; release: %v; lock handed over after %v", ended, released, ms(rival.at.Sub(began)))
	l.judge("a mutex", false)
}

// One server loses power. If it syncs its log, the next token is higher than all before. If it does not, its
// transaction numbers go back, and so do tokens: a store then refuses the new holder, and accepts a former
// one.
func tokenAfterPowerCut(t *trial, forceSync string) {
	l := newDiskLab(t, 1, zktest.Property("forceSync", forceSync))
	var before int64
	for range 5 {
		h, token := l.take(l.mutex(l.ConnectString(), diskLock, 4*time.Second))
		before = token
		l.must(h.release())
	}
	l.cutPower()
	_, after := l.take(l.mutex(l.ConnectString(), diskLock, 4*time.Second))
	if grows := after > before; grows != (forceSync == "yes") {
		t.Errorf("token %#x after %#x", after, before)
	}
	l.figure("token %#x after %#x", after, before)
	l.judge("a mutex", forceSync == "no")
}

// All servers lose power while the holder is cut off from them. If they sync their logs, the next contender
// gets the lock after the holder's session, and so after the holder has lost it. If they do not, the holder's
// node and its session are gone, and the next contender gets the lock at once.
func holderAfterPowerCut(t *trial, forceSync string, timeout time.Duration) {
	l := newDiskLab(t, voters, zktest.Property("forceSync", forceSync))
	door := zktest.StartProxy(t, l.Addr(0))
	_, before := l.take(l.mutex(door.Addr(), diskLock, timeout))
	door.Blackhole(zktest.Both)
	cutOff := time.Now()
	l.cutPower()
	next, after := l.take(l.mutex(l.ConnectString(), diskLock, timeout))
	took := time.Since(cutOff)
	next.others(l.ctx)
	l.figure("token %#x after %#x", after, before)
	two := l.judge("a mutex", forceSync == "no")
	if forceSync == "yes" && after <= before {
		t.Errorf("token %#x after %#x", after, before)
	}
	// A busy machine can take longer to restart the servers than the holder's lease lasts.
	if forceSync == "no" && two == 0 && took < timeout*4/5 {
		t.Errorf("the contender did not get the lock beside the holder")
	}
}
