//go:build linux

package disks

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// library builds the library that servers load, and returns its name.
func library(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		testserver.Missing(t, err)
	}
	name := filepath.Join(t.TempDir(), "disk.so")
	build := exec.Command(compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", name,
		filepath.Join("testdata", "disk.c"), "-ldl", "-lpthread")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return name
}

// disk is what a server has its data on. All methods may be called while the server runs.
type disk struct{ dir string }

// diskOf returns the disk of a server, which must be running.
func diskOf(ctx context.Context, e *zktest.Ensemble, i int) (disk, error) {
	text, err := e.Word(ctx, i, "conf")
	if err != nil {
		return disk{}, err
	}
	found := regexp.MustCompile(`(?m)^dataDir=(.*?)(/version-2)?$`).FindStringSubmatch(text)
	if found == nil {
		return disk{}, errors.New("the server does not say where its data is: " + text)
	}
	return disk{filepath.Dir(found[1])}, nil
}

// set writes a number that the library reads before each sync and each write.
func (d disk) set(what string, n int64) error {
	next := filepath.Join(d.dir, what+".next")
	if err := os.WriteFile(next, []byte(strconv.FormatInt(n, 10)), 0o600); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(d.dir, what))
}

// slow has each sync take longer from now on.
func (d disk) slow(by time.Duration) error { return d.set("slow", by.Milliseconds()) }

// full has writes fail after n more bytes.
func (d disk) full(n int64) error { return d.set("full", n) }

// well ends slow and full.
func (d disk) well() error {
	return errors.Join(d.remove("slow"), d.remove("full"))
}

func (d disk) remove(what string) error {
	err := os.Remove(filepath.Join(d.dir, what))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// cutPower drops what the server's logs had not synced. The server must have been killed.
func (d disk) cutPower() error {
	logs, err := filepath.Glob(filepath.Join(d.dir, "data", "version-2", "log.*"))
	if err != nil {
		return err
	}
	for _, log := range logs {
		note := filepath.Join(d.dir, "synced", filepath.Base(log))
		text, err := os.ReadFile(note)
		if errors.Is(err, fs.ErrNotExist) {
			err = os.Remove(log)
		} else if err == nil {
			err = cut(log, string(text))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cut makes what is behind a length zeros, as ZooKeeper has extended the file with.
func cut(file, length string) error {
	synced, err := strconv.ParseInt(strings.TrimSpace(length), 10, 64)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil || info.Size() <= synced {
		return err
	}
	return errors.Join(os.Truncate(file, synced), os.Truncate(file, info.Size()))
}
