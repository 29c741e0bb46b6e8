package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// Without /proc, or with that of another PID namespace, the processes of the command's group end before the lock is free. Of
// others turnstile tells, and it does not wait for them for ever.
func TestRunWithoutProc(t *testing.T) {
	t.Parallel()
	for what, wrap := range map[string][]string{
		"none":  {"-rm", "--kill-child", "sh", "-c", `mount -t tmpfs none /proc && exec "$@"`, "sh"},
		"other": {"-rpf", "--kill-child"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command("unshare", append(wrap, "true")...).CombinedOutput(); err != nil {
				testserver.Missing(t, fmt.Errorf("no namespaces here, which need root: %w: %s", err, out))
			}
			path, j := testserver.Path(t), newJournal(t)
			far := filepath.Join(t.TempDir(), "far")
			script := "setsid sh -c 'echo $$ > " + far + "; exec sleep 60' >/dev/null 2>&1 & (" + j.forever("A") + ") & " +
				"while ! grep -qs A " + string(j) + " || ! grep -qs . " + far + "; do sleep 0.02; done; exit 7"
			p := startCommand(t, server(t), exec.Command("unshare", append(wrap, os.Args[0], "run", path, "--", "sh", "-c", script)...))
			j.await(t, "A")
			if what == "none" {
				pid := pidOf(t, far)
				defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
			}
			rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 0.5")
			p.wait(t, 7)
			rival.wait(t, 0)
			wantLast(t, j, "B", "A", "a")
			for _, want := range []string{"are not found", "does not show"} {
				if !strings.Contains(p.stderr.String(), want) {
					t.Errorf("stderr %q does not contain %q", p.stderr, want)
				}
			}
		})
	}
}
