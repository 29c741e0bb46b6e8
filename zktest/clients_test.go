package zktest_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// The client that this module is built on.
func TestGoZooKeeperClient(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	a, _ := connect(t, srv.Addr())
	b, _ := connect(t, srv.Addr())
	create(t, a, "/n", 0)
	_, _, children, err := b.ChildrenW("/n")
	if err != nil {
		t.Fatal(err)
	}
	_, _, data, err := b.GetW("/n")
	if err != nil {
		t.Fatal(err)
	}
	path, err := a.CreateProtectedEphemeralSequential("/n/lock-", nil, zk.WorldACL(zk.PermAll))
	if err != nil || !strings.HasSuffix(path, "-lock-0000000000") {
		t.Fatalf("created %q, %v", path, err)
	}
	if e := receive(t, children, "the event of a child"); e.Type != zk.EventNodeChildrenChanged || e.Path != "/n" {
		t.Errorf("event %+v", e)
	}
	results, err := a.Multi(
		&zk.CheckVersionRequest{Path: path, Version: 0},
		&zk.SetDataRequest{Path: "/n", Data: []byte("x"), Version: 0},
		&zk.CreateRequest{Path: "/m", Acl: zk.WorldACL(zk.PermAll)})
	if err != nil || len(results) != 3 || results[1].Stat.Version != 1 || results[2].String != "/m" {
		t.Errorf("multi: %+v, %v", results, err)
	}
	if e := receive(t, data, "the event of a change"); e.Type != zk.EventNodeDataChanged {
		t.Errorf("event %+v", e)
	}
	if _, err := a.Multi(&zk.DeleteRequest{Path: "/m", Version: 0}, &zk.DeleteRequest{Path: "/n", Version: -1}); !errors.Is(err, zk.ErrNotEmpty) {
		t.Errorf("multi that cannot be: %v, want %v", err, zk.ErrNotEmpty)
	}
	if !exists(t, b, "/m") {
		t.Error("half of a multi was done")
	}
	if _, err := a.CreateContainer("/c", nil, zk.FlagContainer, zk.WorldACL(zk.PermAll)); err != nil {
		t.Error(err)
	}
	if _, err := a.CreateTTL("/ttl", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Hour); err != nil {
		t.Error(err)
	}
	_, s, lost, err := b.GetW(path)
	if err != nil || s.EphemeralOwner != a.SessionID() {
		t.Errorf("owner %#x, %v; want %#x", s.EphemeralOwner, err, a.SessionID())
	}
	a.Close()
	if e := receive(t, lost, "the event of the session's end"); e.Type != zk.EventNodeDeleted {
		t.Errorf("event %+v", e)
	}
}

// Python's client, with its recipes.
func TestKazoo(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import kazoo").Run(); err != nil {
		testserver.Missing(t, errors.New("kazoo is missing"))
	}
	srv := zktest.Start(t)
	out, err := exec.CommandContext(soon(t), python, filepath.Join("testdata", "kazoo_client.py"), srv.Addr()).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Java's client, with ZooKeeper's own shell.
func TestZooKeeperMain(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	cmd := shell(t, srv.Addr())
	cmd.Stdin = strings.NewReader(strings.Join([]string{
		"ls -w /", "create /shell data", "get -s /shell", "create -e -s /shell/e- x", "ls /shell",
		"addauth digest user:password", "setAcl /shell auth::cdrwa", "getAcl /shell", "sync /shell", "deleteall /shell", "ls /", "quit",
	}, "\n") + "\n")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"[zookeeper]", "Created /shell", "type:NodeChildrenChanged path:/", "dataVersion = 0", "Created /shell/e-0000000000",
		"[e-0000000000]", "'digest,'user:", "Sync is OK",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the shell has not said %q:\n%s", want, out.String())
			break
		}
	}
	if _, err := srv.Word("ruok"); err != nil {
		t.Error(err)
	}
}

// shell returns the command that runs ZooKeeper's shell.
func shell(t *testing.T, addr string) *exec.Cmd {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		testserver.Missing(t, errors.New("java is missing"))
	}
	const jars = "/usr/share/java"
	path := filepath.Join(jars, "zookeeper.jar")
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		path = filepath.Join(home, "lib", "*") + string(os.PathListSeparator) + filepath.Join(home, "*")
	} else if _, err := os.Stat(path); err != nil {
		testserver.Missing(t, fmt.Errorf("%s is missing", path))
	}
	path = strings.Join([]string{path, filepath.Join(jars, "commons-cli.jar"), filepath.Join(jars, "slf4j-nop.jar")}, string(os.PathListSeparator))
	return exec.CommandContext(soon(t), java, "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp", path,
		"org.apache.zookeeper.ZooKeeperMain", "-server", addr)
}
