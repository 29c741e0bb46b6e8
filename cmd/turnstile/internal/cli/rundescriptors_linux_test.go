package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// All files of turnstile's caller reach the command with their numbers, and no others do, such as
// those of the jobserver of make.
//
// It is not parallel: other tests start guards in this process, and a shell that starts at the same time inherits the
// socket of such a guard.
func TestRunDescriptors(t *testing.T) {
	const last = 14
	script := fmt.Sprintf("for i in {3..%d}; do echo $i >&$i; done; (cd /proc/$$/fd; echo *)", last)
	direct := withDescriptors(t, last, "exec bash -c \"$0\"", script)
	through := withDescriptors(t, last, "exec \"$1\" run \"$2\" -- bash -c \"$0\"", script, os.Args[0], testserver.Path(t))
	if through != direct {
		t.Errorf("the command has the files %s, want %s", through, direct)
	}
}

// withDescriptors runs a shell command that gets files 3 to last, and writes their numbers into them. It returns the output.
func withDescriptors(t *testing.T, last int, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("bash", append([]string{"-c"}, args[0])...)
	cmd.Args = append(cmd.Args, args[1:]...)
	cmd.Env = append(os.Environ(), programEnv+"=1", "TURNSTILE_ZK="+server(t), longTimeout)
	for i := 3; i <= last; i++ {
		file, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for i := 3; i <= last; i++ {
		number := strconv.Itoa(i)
		if text, _ := os.ReadFile(filepath.Join(dir, number)); string(text) != number+"\n" {
			t.Errorf("file %s has %q", number, text)
		}
	}
	return string(out)
}
