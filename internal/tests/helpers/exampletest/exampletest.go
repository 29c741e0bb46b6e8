// Package exampletest runs the programs of the examples as their users do, and checks how
// they end: on SIGTERM, and where there is no ZooKeeper.
package exampletest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// mainEnv is set in the processes that run the example's main function in place of its tests.
const mainEnv = "TURNSTILE_EXAMPLE_MAIN"

// Main is the body of TestMain in an example. The test binary is the example's program too:
// in the processes that [Stops] and [WrongServer] start, and in those that have one of the
// given arguments, which the example starts by itself.
func Main(m *testing.M, main func(), arguments ...string) {
	share.UnlockPatience = testserver.Patience
	ours := func(arg string) bool { return slices.Contains(os.Args, arg) }
	if os.Getenv(mainEnv) != "" || slices.ContainsFunc(arguments, ours) {
		main()
		os.Exit(0)
	}
	testserver.Main(m)
}

// Server returns the addresses of the shared server. CI runs the tests that ask, and a plain "go test ./..." does not.
func Server(t *testing.T) string {
	t.Helper()
	longtest.InCI(t)
	return testserver.Server(t).ConnectString()
}

// program returns the command that runs the example.
func program(args ...string) (cmd *exec.Cmd, output *bytes.Buffer) {
	cmd, output = exec.Command(os.Args[0], args...), new(bytes.Buffer)
	cmd.Env = append(os.Environ(), mainEnv+"=1")
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = testserver.Patience // an orphan may have the output open
	return cmd, output
}

// tries bounds how often Stops starts a program that ends by itself before it is told to.
const tries = 5

// Ends checks how an example ends that has some work to do: on SIGTERM, with an error, and by itself where there is no
// ZooKeeper. The arguments are made from the address of a server. There are contenders in dir while the work goes on.
func Ends(t *testing.T, dir string, args func(addr string) []string) {
	t.Helper()
	longtest.InCI(t)
	t.Run("SIGTERM", func(t *testing.T) { Stops(t, dir, 1, args(testserver.Server(t).ConnectString())...) })
	t.Run("wrong server", func(t *testing.T) { WrongServer(t, args) })
}

// Stops checks that the example ends on SIGTERM, with this code, and leaves no process and no contender. It
// tells it when there are contenders in dir, on the shared server. The arguments name that
// server.
func Stops(t *testing.T, dir string, code int, args ...string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGTERM to send; on all other systems this runs")
	}
	for range tries {
		if stops(t, dir, code, args) {
			return
		}
	}
	t.Errorf("the program has ended by itself before it was told to, %d times", tries)
}

func stops(t *testing.T, dir string, code int, args []string) bool {
	t.Helper()
	cmd, output := program(args...)
	ownGroup(cmd)
	expect.NoError(t, cmd.Start())
	defer killGroup(cmd)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	zktest.Eventually(t, testserver.Patience, "contenders in "+dir, func() bool {
		return len(testserver.Children(t, dir)) > 0 || len(ended) > 0
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		<-ended
		return false
	} else if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if errors.Is(err, exec.ErrWaitDelay) || cmd.ProcessState.ExitCode() != code {
			t.Errorf("it ends with %v, want code %d, after\n%s", err, code, output)
		}
	case <-time.After(testserver.Patience):
		t.Fatal("it goes on after SIGTERM")
	}
	if !groupEnded(cmd) {
		t.Errorf("it leaves processes behind, after\n%s", output)
	}
	testserver.WaitChildren(t, dir, 0)
	return true
}

// soon is how long an example may take to say that there is no ZooKeeper. It gives up after eight seconds.
// The rest is for a busy machine.
const soon = 8*time.Second + 2*testserver.Patience

// nobody is an address at which nobody listens. The port is below those that servers get by chance.
const nobody = "127.0.0.1:1"

// WrongServer checks that the example gives up by itself, and says that nothing answers at the
// address. The arguments are made from that address.
func WrongServer(t *testing.T, args func(addr string) []string) {
	t.Helper()
	longtest.Only(t)
	cmd, output := program(args(nobody)...)
	expect.NoError(t, cmd.Start())
	late := time.AfterFunc(soon, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !late.Stop() {
		t.Errorf("it tries for more than %v", soon)
	}
	if err == nil || !cmd.ProcessState.Exited() {
		t.Errorf("it ends with %v", err)
	}
	if !strings.Contains(output.String(), nobody) {
		t.Errorf("it does not name %s, but says %q", nobody, output)
	}
}

// ZK is the arguments of most examples.
func ZK(addr string) []string { return []string{"-zk", addr} }

// Buffer is a bytes.Buffer for several writers, which may be read meanwhile.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
