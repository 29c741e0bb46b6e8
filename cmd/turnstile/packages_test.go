package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// TestPackages builds the deb, the rpm and the archive of this machine, and installs them into directories.
func TestPackages(t *testing.T) {
	longtest.Only(t)
	if runtime.GOOS != "linux" {
		testserver.Missing(t, errors.New("debs and rpms are for Linux"))
	}
	dir := t.TempDir()
	first, again := build(t, filepath.Join(dir, "first")), build(t, filepath.Join(dir, "again"))
	if first != again {
		t.Errorf("built again, the files differ:\n%s%s", first, again)
	}
	one := func(t *testing.T, pattern string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, "first", pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		return found[0]
	}
	t.Run("deb", func(t *testing.T) {
		root := t.TempDir()
		run(t, "", "mkdir", "-p", root+"/var/lib/dpkg/updates", root+"/var/lib/dpkg/info")
		run(t, "", "touch", root+"/var/lib/dpkg/status")
		run(t, "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "dpkg", "--root="+root, "--log="+filepath.Join(root, "log"),
			"--force-not-root", "--path-include=/usr/*", "--install", one(t, "*.deb"))
		installed(t, root)
	})
	t.Run("rpm", func(t *testing.T) {
		if os.Geteuid() != 0 {
			testserver.Missing(t, errors.New("only root can install an rpm"))
		}
		root := t.TempDir()
		run(t, "", "rpm", "--root", root, "--force-debian", "--install", one(t, "*.rpm"))
		installed(t, root)
	})
	t.Run("archive", func(t *testing.T) {
		root := t.TempDir()
		run(t, "", "tar", "-C", root, "--strip-components=1", "-xzf", one(t, "*.tar.gz"))
		run(t, "", filepath.Join(root, "turnstile"), "version")
		for _, file := range []string{"LICENSES", "completions/turnstile.bash", "man/turnstile.1"} {
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Error(err)
			}
		}
	})
}

// build builds the packages, checks their sums, and returns them.
func build(t *testing.T, dir string) string {
	t.Helper()
	run(t, "", filepath.Join("..", "..", ".ci", "packages"), "-o", dir, "linux/"+runtime.GOARCH)
	return run(t, "", "sh", "-c", "cd '"+dir+"' && sha256sum --check --strict --quiet SHA256SUMS && cat SHA256SUMS")
}

// run runs a program, with more variables in its environment, and returns what it prints.
func run(t *testing.T, env, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		testserver.Missing(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), strings.Fields(env)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, &stdout, &stderr)
	}
	return stdout.String()
}

// installed checks a package that is installed below a directory: the binary runs, groff has nothing to warn of in the
// manual pages, and bash finds the completion by itself.
func installed(t *testing.T, root string) {
	t.Helper()
	run(t, "", filepath.Join(root, "usr/bin/turnstile"), "version")
	pages, err := filepath.Glob(filepath.Join(root, "usr/share/man/man1/turnstile*.1.gz"))
	if err != nil || len(pages) < 10 {
		t.Errorf("manual pages: %q, %v", pages, err)
	}
	for _, page := range pages {
		warnings := run(t, "MANWIDTH=80 MANROFFSEQ= LC_ALL=C.UTF-8", "sh", "-c", "man --warnings -E UTF-8 -l '"+page+"' 2>&1 >/dev/null")
		if warnings != "" {
			t.Errorf("%s: %s", page, warnings)
		}
	}
	path := filepath.Join(root, "usr/bin") + ":" + os.Getenv("PATH")
	got := run(t, "PATH="+path+" XDG_DATA_DIRS="+filepath.Join(root, "usr/share"), "bash", "-c", `
		source /usr/share/bash-completion/bash_completion
		__load_completion turnstile || exit
		COMP_WORDS=(turnstile re) COMP_CWORD=1 COMP_LINE="turnstile re" COMP_POINT=12 COMP_TYPE=9
		__start_turnstile
		printf '%s\n' "${COMPREPLY[@]}"`)
	if strings.TrimSpace(got) != "resize" {
		t.Errorf("bash completes \"turnstile re\" as %q", got)
	}
}
