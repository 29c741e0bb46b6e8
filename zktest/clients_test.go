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

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

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
