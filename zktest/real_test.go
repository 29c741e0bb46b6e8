package zktest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestServerLifecycle(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	e := zktest.StartReal(t)
	conn, _ := connect(t, e.ConnectString())
	create(t, conn, "/kept", 0)

	if err := e.Start(soon(t), 0); err == nil {
		t.Error("starting a running server: no error")
	}
	for name, end := range map[string]func(int) error{"kill": e.Kill, "stop": e.Stop} {
		if err := end(0); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := end(0); err != nil {
			t.Errorf("%s again: %v", name, err)
		}
		if _, err := e.Word(soon(t), 0, "ruok"); err == nil {
			t.Errorf("%s: the server still answers", name)
		}
		if err := e.Pause(0); err == nil {
			t.Errorf("%s: pausing what is not running: no error", name)
		}
		if err := e.Start(soon(t), 0); err != nil {
			t.Fatalf("start after %s: %v", name, err)
		}
	}
	must(t, e.Restart(soon(t), 0))

	again, _ := connect(t, e.Addr(0))
	if !exists(t, again, "/kept") {
		t.Error("restarts have lost a node")
	}
	if log := e.Log(0); !strings.Contains(log, "zookeeper") && !strings.Contains(log, "ZooKeeper") {
		t.Errorf("log has nothing of ZooKeeper's: %q", log)
	}
}

func TestServerPause(t *testing.T) {
	longtest.InCI(t)
	t.Parallel()
	e := zktest.StartReal(t)
	must(t, e.Pause(0))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if text, err := e.Word(ctx, 0, "ruok"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused server answers %q, %v", text, err)
	}
	if err := e.WaitReady(soon(t)); err != nil {
		t.Errorf("WaitReady with the only server paused: %v", err)
	}
	must(t, e.Resume(0))
	if text, err := e.Word(soon(t), 0, "ruok"); text != "imok" || err != nil {
		t.Errorf("resumed server answers %q, %v", text, err)
	}
	must(t, e.Pause(0))
	if err := e.Stop(0); err != nil {
		t.Errorf("stopping a paused server: %v", err)
	}
}

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
	longtest.InCI(t)
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
