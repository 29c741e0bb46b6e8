package fakeclocks

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
)

// An edit replaces text that a file has once.
type edit struct{ file, old, new string }

// runtimeEdits are in the directory of Go's sources.
var runtimeEdits = []edit{
	{"runtime/time_nofake.go", "\treturn nanotime1()\n}\n", `	return nanotime1() - FakeClocks[1]
}

// FakeClocks are seconds that the wall clock is ahead, and nanoseconds that the other is behind.
var FakeClocks = &[2]int64{}

func fakeNow(sec int64, nsec int32, mono int64) (int64, int32, int64) {
	return sec + FakeClocks[0], nsec, mono - FakeClocks[1]
}
`},
	{"runtime/time.go", "\treturn time_now()\n", "\treturn fakeNow(time_now())\n"},
}

// wireEdits are in the directory of this module. They have CLOCK_BOOTTIME ahead of CLOCK_MONOTONIC by what Go's
// clock is behind.
var wireEdits = []edit{
	{"internal/clock/now_unix.go", "import (\n", "import (\n\t\"runtime\"\n"},
	{"internal/clock/now_unix.go", "awake.Nano())\n", "awake.Nano()) + time.Duration(runtime.FakeClocks[1])\n"},
}

// mapping is one more file of this package.
const mapping = `package fakeclocks

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

func init() {
	f, err := os.Open(os.Getenv(fileEnv))
	if err != nil {
		panic(err)
	}
	defer f.Close()
	page, err := syscall.Mmap(int(f.Fd()), 0, fileSize, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	runtime.FakeClocks = (*[2]int64)(unsafe.Pointer(&page[0]))
}
`

// Build builds the test binary of the package in a directory, relative to the root of this module, and returns
// its name. A binary that does not know of suspensions is like one on a system that cannot tell how long the
// machine was suspended.
func Build(t *testing.T, pkg string, knowsSuspension bool) string {
	t.Helper()
	env, err := exec.Command("go", "env", "GOROOT", "GOMOD").Output()
	expect.NoError(t, err)
	goroot, gomod, _ := strings.Cut(strings.TrimSpace(string(env)), "\n")
	root := filepath.Dir(gomod)
	replaced := make(map[string]string) // text by name
	apply(t, replaced, filepath.Join(goroot, "src"), runtimeEdits)
	if knowsSuspension {
		apply(t, replaced, root, wireEdits)
	}
	replaced[filepath.Join(root, "internal", "tests", "helpers", "fakeclocks", "mapping.go")] = mapping
	binary := filepath.Join(t.TempDir(), "clocks.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay(t, replaced), "-o", binary, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return binary
}

// apply adds the files below dir that the edits change.
func apply(t *testing.T, replaced map[string]string, dir string, edits []edit) {
	t.Helper()
	for _, e := range edits {
		name := filepath.Join(dir, filepath.FromSlash(e.file))
		text, ok := replaced[name]
		if !ok {
			b, err := os.ReadFile(name)
			expect.NoError(t, err)
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%s has the text to change %d times, not once:\n%s", name, n, e.old)
		}
		replaced[name] = strings.Replace(text, e.old, e.new, 1)
	}
}

// overlay writes the texts and the file that says what they replace.
func overlay(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	replace := make(map[string]string)
	for name, text := range texts {
		replace[name] = filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		expect.NoError(t, os.WriteFile(replace[name], []byte(text), 0o600))
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	expect.NoError(t, err)
	out := filepath.Join(dir, "overlay.json")
	expect.NoError(t, os.WriteFile(out, b, 0o600))
	return out
}
