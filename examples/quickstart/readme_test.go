package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

var program = regexp.MustCompile("(?s)```go\n(package .*?)```")

// The programs in README.md run as they stand. The first one gets the address of a server.
func TestREADME(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := program.FindAllStringSubmatch(string(text), -1)
	if len(found) != 2 {
		t.Fatalf("README.md has %d programs, want one and a test", len(found))
	}
	const addr = `"localhost:2181"`
	main := strings.Replace(found[0][1], addr, `"`+testserver.Server(t).ConnectString()+`"`, 1)
	for _, c := range []struct {
		file, text, says string
		command          []string
	}{
		{"main.go", main, "no other process is here\n", []string{"run"}},
		{"shop_test.go", found[1][1], "--- PASS: TestLockLost", []string{"test", "-vet=off", "-v"}},
	} {
		file := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", append(c.command, file)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v\n%s", c.file, err, out)
		}
	}
}
