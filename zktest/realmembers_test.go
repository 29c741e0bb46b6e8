package zktest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

// states returns what each server says of itself.
func states(t *testing.T, e *zktest.Ensemble) string {
	t.Helper()
	all := make([]string, e.Len())
	for i := range all {
		metrics, err := e.Metrics(soon(t), i)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = metrics["zk_server_state"]
	}
	return strings.Join(all, " ")
}

// The last servers are observers, also after a restart.
func TestObservers(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	e := zktest.StartReal(t, zktest.Servers(3), zktest.Observers(1))
	if err := e.Restart(soon(t), 3); err != nil {
		t.Fatal(err)
	}
	if got := states(t, e); !strings.HasSuffix(got, " observer") || strings.Count(got, "observer") != 1 {
		t.Errorf("servers are %s, want the last one to be an observer", got)
	}
	conn, _ := connect(t, e.Addr(3))
	create(t, conn, "/by-an-observer", 0)
}

// A server can be removed, and be added again while it runs.
func TestReconfigurable(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	e := zktest.StartReal(t, zktest.Servers(3), zktest.Reconfigurable(), zktest.Property("skipACL", "yes"))
	leader, err := e.Leader(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	removed := (leader + 1) % 3
	conn, _ := connect(t, e.Addr(leader))
	members, _, err := conn.Get("/zookeeper/config")
	if err != nil {
		t.Fatal(err)
	}
	number := string(rune('1' + removed))
	var line string
	for l := range strings.Lines(string(members)) {
		if strings.HasPrefix(l, "server."+number+"=") {
			line = strings.TrimSpace(l)
		}
	}
	if !strings.HasSuffix(line, ";"+e.Addr(removed)) {
		t.Errorf("server %s is known as %q, want its address for clients, %s", number, line, e.Addr(removed))
	}
	if _, err := conn.IncrementalReconfig(nil, []string{number}, -1); err != nil {
		t.Fatalf("remove: %v", err)
	}
	if _, err := conn.IncrementalReconfig([]string{line}, nil, -1); err != nil {
		t.Fatalf("add: %v", err)
	}
	if got := states(t, e); strings.Count(got, "follower") != 2 {
		t.Errorf("servers are %s, want two followers", got)
	}
}

// A server runs another ZooKeeper from its next start on, and only then.
func TestSetHome(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	e := zktest.StartReal(t)
	for name, dir := range map[string]string{"none": filepath.Join(t.TempDir(), "none"), "empty": t.TempDir()} {
		if err := e.SetHome(0, dir); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error %v, want one that names the directory", name, err)
		}
	}
	// A jar of that name will do, but is no ZooKeeper.
	fake := t.TempDir()
	if err := os.WriteFile(filepath.Join(fake, "zookeeper.jar"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.SetHome(0, fake); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Word(soon(t), 0, "ruok"); err != nil {
		t.Errorf("the server that runs: %v", err)
	}
	if err := e.Restart(soon(t), 0); err == nil {
		t.Error("a server started from a directory without ZooKeeper")
	}
}
