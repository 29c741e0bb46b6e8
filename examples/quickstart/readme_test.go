package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

var program = regexp.MustCompile("(?s)```go\n(package .*?)```")

// The program in README.md and the test in the tutorial run as they stand. The program gets the address of a server.
func TestREADME(t *testing.T) {
	longtest.InCI(t)
	root := filepath.Join("..", "..")
	only := func(page string) string {
		text, err := os.ReadFile(filepath.Join(root, page))
		expect.NoError(t, err)
		found := program.FindAllStringSubmatch(string(text), -1)
		if len(found) != 1 {
			t.Fatalf("%s has %d programs, want one", page, len(found))
		}
		return found[0][1]
	}
	const addr = `"localhost:2181"`
	main := strings.Replace(only("README.md"), addr, `"`+testserver.Server(t).ConnectString()+`"`, 1)
	for _, c := range []struct {
		file, text, says string
		command          []string
	}{
		{"main.go", main, "no other process is here\n", []string{"run"}},
		{"shop_test.go", only("docs/tutorial.md"), "--- PASS: TestLockLost", []string{"test", "-vet=off", "-v"}},
	} {
		file := filepath.Join(t.TempDir(), c.file)
		expect.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		cmd := exec.CommandContext(t.Context(), "go", append(c.command, file)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v\n%s", c.file, err, out)
		}
	}
}
