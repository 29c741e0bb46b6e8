package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// A result that could not be written is no success: not for lists, and not for help.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	hold(t, path)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
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
