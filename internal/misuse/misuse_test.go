package misuse_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// go vet reports each copy in the package copies, and nothing else there.
func TestCopies(t *testing.T) {
	const file = "testdata/copies/copies.go"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "vet", "-copylocks", "./testdata/copies").CombinedOutput()
	if err == nil {
		t.Fatal("go vet reports nothing")
	}
	reports := strings.Count(string(out), "passes lock by value")
	copies := 0
	for i, line := range strings.Split(string(source), "\n") {
		name, isCopy := strings.CutSuffix(strings.TrimSpace(line), ",")
		if !isCopy {
			continue
		}
		copies++
		if !strings.Contains(string(out), fmt.Sprintf("%s:%d:", file, i+1)) {
			t.Errorf("go vet does not report the copy of %s", name)
		}
	}
	if reports != copies || copies == 0 {
		t.Errorf("%d reports for %d copies:\n%s", reports, copies, out)
	}
}

// Context allocates nothing.
func TestContextAllocatesNothing(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { misuse.Context(ctx, "test: TestContext") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
