package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// A result that could not be written is no success: not for lists, and not for help.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	hold(t, path)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	expect.NoError(t, err)
	defer full.Close()
	for _, args := range []string{
		"ls", "show " + path, "check --timeout 2s", "version", "help", "completion bash",
	} {
		cmd := exec.Command(os.Args[0], strings.Fields(args)...)
		cmd.Stdout = full
		startCommand(t, server(t), cmd).wait(t, codeFailed)
	}
	// The status of a command is its own.
	cmd := exec.Command(os.Args[0], "run", testserver.Path(t), "--", "sh", "-c", "echo a; exit 3")
	cmd.Stdout = full
	startCommand(t, server(t), cmd).wait(t, 3)
}

// A pipe that nobody reads any more, as after "| head" or the end of a logger, ends neither turnstile nor its command: not
// with warnings of turnstile, and not at the end. The lock is released as always.
func TestRunReaderGone(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	r, w, err := os.Pipe()
	expect.NoError(t, err)
	defer w.Close()
	proxy := testserver.Proxy(t)
	cmd := exec.Command(os.Args[0], "run", "-vv", path, "--", "sh", "-c",
		"exec >/dev/null 2>&1; trap '"+j.once("usr1")+"' USR1; trap 'exit 7' TERM; "+j.once("A")+"; while :; do sleep 0.02; done")
	cmd.Stdout, cmd.Stderr = w, w
	p := startCommand(t, proxy.Addr(), cmd)
	j.await(t, "A")
	r.Close()
	// A new connection is logged, and so is the lost one. The signal comes through only after that.
	proxy.Disconnect()
	proxy.ResetRequests()
	zktest.Eventually(t, patience, "another connection", func() bool { return len(proxy.Requests()) > 0 || !p.running() })
	p.signal(t, syscall.SIGUSR1)
	j.await(t, "usr1")
	p.signal(t, syscall.SIGTERM)
	p.wait(t, 7)
	testserver.WaitChildren(t, path, 0)
}

// All files of turnstile's caller reach the command with their numbers, and no others do, such as
// those of the jobserver of make.
func TestRunDescriptors(t *testing.T) {
	const writes = `bash -c 'for i in {3..14}; do echo $i >&$i; done; (cd /proc/$$/fd; echo *)'`
	files := func(run string) string {
		dir := t.TempDir()
		p := startCommand(t, server(t), exec.Command("bash", "-c", `for i in {3..14}; do eval "exec $i>`+dir+`/$i"; done; exec `+run+writes))
		p.wait(t, 0)
		for i := 3; i <= 14; i++ {
			number := strconv.Itoa(i)
			if text, _ := os.ReadFile(filepath.Join(dir, number)); string(text) != number+"\n" {
				t.Errorf("file %s has %q", number, text)
			}
		}
		return p.stdout.String()
	}
	if direct, through := files(""), files(os.Args[0]+" run "+testserver.Path(t)+" -- "); through != direct {
		t.Errorf("the command has the files %s, want %s", through, direct)
	}
}
