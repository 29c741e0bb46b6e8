package zktest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest/internal/javaserver"
)

// installed returns the ZooKeeper of this machine, or skips the test.
func installed(t *testing.T) javaserver.Installation {
	t.Helper()
	in, err := javaserver.Find(ErrNoZooKeeper)
	if errors.Is(err, ErrNoZooKeeper) && !realRequired() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// A release of Apache has its jars in the directory lib.
func TestZooKeeperHome(t *testing.T) {
	longtest.Only(t) // .ci/versions runs the other tests on such directories
	in := installed(t)
	home := t.TempDir()
	lib := filepath.Join(home, "lib")
	if err := os.Mkdir(lib, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, jar := range in.ClassPath {
		if err := os.Symlink(jar, filepath.Join(lib, filepath.Base(jar))); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("ZOOKEEPER_HOME", home)
	e := StartReal(t)
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	env, err := e.Word(ctx, 0, "envi")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(env, lib) {
		t.Errorf("the class path does not have %s:\n%s", lib, env)
	}
}
