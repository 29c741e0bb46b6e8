package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

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
