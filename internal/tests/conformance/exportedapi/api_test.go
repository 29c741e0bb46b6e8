package exportedapi

import (
	"bytes"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/turnstile-go/turnstile/"

// packages are what users import.
var packages = []string{"session", "queue", "zklock", "rwlock", "semaphore", "election", "schedule", "fence", "otelzk", "lockz", "zktest"}

var update = flag.Bool("update", false, "write the lists in testdata")

// The lists in testdata are those of the code.
func TestAPI(t *testing.T) {
	exports := compile(t)
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("%s was not compiled", path)
		}
		return os.Open(file)
	})
	for _, name := range packages {
		t.Run(name, func(t *testing.T) {
			pkg, err := imp.Import(module + name)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", name+".txt"), list(pkg))
		})
	}
}

// compile returns the file of export data of each package and of all that it imports.
func compile(t *testing.T) map[string]string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, name := range packages {
		args = append(args, module+name)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	exports := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if file != "" {
			exports[path] = file
		}
	}
	return exports
}

func compare(t *testing.T, file string, lines []string) {
	t.Helper()
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-gone +new); if that is meant: make api\n%s", diff)
	}
}
