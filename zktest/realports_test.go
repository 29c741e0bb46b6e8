package zktest

import (
	"context"
	"errors"
	"net"
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

// If any of the ports is taken, by a silent process or by another ZooKeeper, the start fails with the
// error that leads to another attempt.
func TestPortTaken(t *testing.T) {
	longtest.Only(t)
	in := installed(t)
	squatter, err := NewReal()
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	silentPort := silent.Addr().(*net.TCPAddr).Port

	for name, c := range map[string]struct {
		nodes int
		take  func([]javaserver.Ports)
	}{
		"client port":          {1, func(p []javaserver.Ports) { p[0].Client = silentPort }},
		"by another ZooKeeper": {1, func(p []javaserver.Ports) { p[0].Client = squatter.servers[0].Port }},
		"client port of three": {3, func(p []javaserver.Ports) { p[2].Client = silentPort }},
		"election port":        {3, func(p []javaserver.Ports) { p[2].Election = silentPort }},
		"quorum port": {3, func(p []javaserver.Ports) {
			for i := range p { // only the leader needs its port, and any server may become the leader
				p[i].Quorum = silentPort
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := newRealConfig([]RealOption{Nodes(c.nodes)})
			if err != nil {
				t.Fatal(err)
			}
			ports, err := javaserver.FreePorts(c.nodes)
			if err != nil {
				t.Fatal(err)
			}
			c.take(ports)
			ctx, cancel := context.WithTimeout(t.Context(), startWithin)
			defer cancel()
			e, err := startOn(ctx, in, config, ports)
			if err == nil {
				_ = e.Close()
			}
			if !errors.Is(err, errPortTaken) {
				t.Errorf("start: %v; want %v", err, errPortTaken)
			}
		})
	}
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
