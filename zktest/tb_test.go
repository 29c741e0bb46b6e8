package zktest_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

// fakeTB records what becomes of a test. Its Fatalf and Skipf return, which the functions under test must survive.
type fakeTB struct {
	zktest.TB
	skipped, failed string
	cleanups        []func()
}

func (f *fakeTB) Helper()             {}
func (f *fakeTB) Logf(string, ...any) {}
func (f *fakeTB) Cleanup(c func())    { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) Failed() bool        { return f.failed != "" }
func (f *fakeTB) Skipf(format string, args ...any) {
	f.skipped = fmt.Sprintf(format, args...)
}
func (f *fakeTB) Fatalf(format string, args ...any) {
	f.failed = fmt.Sprintf(format, args...)
}

func TestStartRealWithoutZooKeeper(t *testing.T) {
	for require, skips := range map[string]bool{"": true, "0": true, "1": false, "true": false} {
		t.Setenv("PATH", "")
		t.Setenv("JAVA_HOME", "")
		t.Setenv(zktest.RequireEnv, require)
		tb := new(fakeTB)
		if e := zktest.StartReal(tb); e != nil {
			t.Fatal("an ensemble without Java")
		}
		if (tb.skipped != "") != skips || (tb.failed != "") == skips {
			t.Errorf("%s=%q: the test is skipped with %q, failed with %q", zktest.RequireEnv, require, tb.skipped, tb.failed)
		}
	}
}

func TestStartRealWithWrongHome(t *testing.T) {
	sharedServer(t) // skips
	t.Setenv("ZOOKEEPER_HOME", t.TempDir())
	tb := new(fakeTB)
	zktest.StartReal(tb)
	if !strings.Contains(tb.failed, "ZOOKEEPER_HOME") {
		t.Errorf("failed with %q, skipped with %q; want ZOOKEEPER_HOME to be named a failure", tb.failed, tb.skipped)
	}
}

func TestEventually(t *testing.T) {
	tb := new(fakeTB)
	calls := 0
	zktest.Eventually(tb, time.Minute, "third call", func() bool { calls++; return calls == 3 })
	if tb.failed != "" || calls != 3 {
		t.Errorf("%d calls, failed with %q; want 3 and none", calls, tb.failed)
	}
	zktest.Eventually(tb, time.Millisecond, "the moon", func() bool { return false })
	if !strings.Contains(tb.failed, "the moon") {
		t.Errorf("failed with %q; want it to name the moon", tb.failed)
	}
}

// A test with a server that is past help fails at its end.
func TestStartTellsOfFailure(t *testing.T) {
	for size, want := range map[int]bool{1200: false, 1300: true} {
		tb := new(fakeTB)
		srv := zktest.Start(tb, zktest.MaxPacket(256))
		conn, _ := connect(t, srv.Addr())
		for i := range size / 100 {
			create(t, conn, fmt.Sprintf("/%095d", i), zk.FlagEphemeral)
		}
		must(t, srv.Expire(soon(t), conn.SessionID()))
		conn.Close()
		for _, c := range tb.cleanups {
			c()
		}
		if got := strings.Contains(tb.failed, "cannot read its log"); got != want {
			t.Errorf("%d bytes: the test fails with %q", size, tb.failed)
		}
	}
}

func TestStartRealCleansUp(t *testing.T) {
	longtest.InCI(t)
	sharedServer(t) // skips
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	tb := &fakeTB{}
	e := zktest.StartReal(tb)
	if e == nil {
		t.Fatal(tb.failed)
	}
	tb.failed = "so that it prints logs"
	for _, c := range tb.cleanups {
		c()
	}
	if _, err := e.Word(soon(t), 0, "ruok"); err == nil {
		t.Error("the server has outlived its test")
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "zktest-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
