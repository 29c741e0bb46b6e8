package zktest_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// orphanEnv makes this test binary a program that starts a server, says where it is and waits to be killed.
const orphanEnv = "ZKTEST_ORPHAN"

func orphanMain() {
	e, err := zktest.NewReal()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(e.Addr(0))
	select {}
}

func TestServerDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	sharedServer(t) // skips
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orphanEnv+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	addr := strings.TrimSpace(line)
	if err != nil {
		t.Errorf("no address from the child: %q, %v", line, err)
	}
	if conn, err := net.Dial("tcp", addr); err != nil {
		t.Errorf("the server is not there: %v", err)
	} else {
		_ = conn.Close()
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	zktest.Eventually(t, testserver.Patience, "the server is gone", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}
