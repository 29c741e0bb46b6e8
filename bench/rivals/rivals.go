package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/javaclient"
)

// The names of the rivals, in the order of the table's columns.
const (
	turnstileName = "turnstile"
	beforeName    = "before"  // turnstile as it was at a commit
	withoutName   = "without" // turnstile without kept places, in rows where turnstile has them
	zkLockName    = "zk.Lock"
	curatorName   = "Curator"
	kazooName     = "kazoo"
	etcdName      = "etcd"
	limitName     = "limit"
)

var names = []string{turnstileName, beforeName, withoutName, zkLockName, curatorName, kazooName, etcdName, limitName}

// optional are those that may be left out.
var optional = names[3:]

// oneRival is a rival by its parts.
type oneRival struct {
	name       string
	lacks      func(row) string
	open       func(context.Context, plan) (team, error)
	contenders func(ctx context.Context, path string) (int, error)
	version    string
	closer     io.Closer // nil: nothing to close
}

func (r *oneRival) Name() string                                   { return r.name }
func (r *oneRival) Lacks(w row) string                             { return r.lacks(w) }
func (r *oneRival) Open(ctx context.Context, p plan) (team, error) { return r.open(ctx, p) }
func (r *oneRival) Contenders(ctx context.Context, p string) (int, error) {
	return r.contenders(ctx, p)
}
func (r *oneRival) Version() string { return r.version }

func (r *oneRival) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// zkContenders counts the children of a lock's directory.
func zkContenders(admin *zk.Conn) func(context.Context, string) (int, error) {
	return func(_ context.Context, p string) (int, error) {
		names, _, err := admin.Children(p)
		if errors.Is(err, zk.ErrNoNode) {
			return 0, nil
		}
		return len(names), err
	}
}

// openRivals makes the rivals named.
func openRivals(ctx context.Context, s *stage, o options, admin *zk.Conn) (all []rival, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(all))
			all = nil
		}
	}()
	for _, name := range o.rivals {
		r := &oneRival{name: name, lacks: func(w row) string { return lacks(name, w) }, contenders: zkContenders(admin)}
		switch name {
		case turnstileName:
			err = r.startOurs(o.before != "")
		case beforeName:
			err = r.startBefore(ctx, o.before, s.dir)
		case withoutName:
			r.version, r.open = "the working tree", inProcess(connectOurs)
		case zkLockName:
			r.version, r.open = module("github.com/go-zookeeper/zk"), inProcess(connectPlain)
		case limitName:
			r.version, r.open = "plain requests through "+module("github.com/go-zookeeper/zk"), inProcess(connectPlain)
		case curatorName:
			err = r.startCurator(ctx, s.dir)
		case kazooName:
			err = r.startKazoo(ctx)
		case etcdName:
			err = r.dialEtcd(ctx, s)
		}
		if err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func closeAll(all []rival) error {
	var errs []error
	for _, r := range all {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

func inProcess(connect func(context.Context, string, plan) (connection, error)) func(context.Context, plan) (team, error) {
	return func(ctx context.Context, p plan) (team, error) { return openLocal(ctx, p, connect) }
}

// module is a Go module and its version.
func module(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == path {
			return path + " " + m.Version
		}
	}
	return path
}

//go:embed CuratorTeam.java
var curatorTeam []byte

// startCurator runs Curator's teams in one JVM, as Java is by default: no flags that favour
// a quick start.
func (r *oneRival) startCurator(ctx context.Context, dir string) error {
	source := filepath.Join(dir, "CuratorTeam.java")
	if err := os.WriteFile(source, curatorTeam, 0o644); err != nil {
		return err
	}
	p, err := javaclient.CompileCurator(ctx, source, dir, "-XX:-UsePerfData")
	if err != nil {
		return err
	}
	version, err := javaclient.CuratorVersion()
	if err != nil {
		return err
	}
	return r.startRemote(ctx, p.Command(context.Background()), "curator-recipes-"+version+", Java ")
}

//go:embed kazoo_team.py
var kazooTeam string

// python is Debian's own, which has Debian's kazoo.
const python = "/usr/bin/python3"

func (r *oneRival) startKazoo(ctx context.Context) error {
	return r.startRemote(ctx, exec.Command(python, "-c", kazooTeam), "kazoo ")
}

func (r *oneRival) startRemote(ctx context.Context, cmd *exec.Cmd, version string) error {
	program, err := startRemote(r.name, cmd)
	if err != nil {
		return err
	}
	words, err := program.call(ctx, "version")
	if err != nil {
		return errors.Join(err, program.Close())
	}
	r.version, r.open, r.closer = version+strings.Join(words, ", Python "), program.open, program
	return nil
}

func (r *oneRival) dialEtcd(ctx context.Context, s *stage) error {
	c, err := dialEtcd(s.etcd[loopback])
	if err != nil {
		return err
	}
	status, err := c.Status(ctx, s.etcd[loopback])
	if err != nil {
		return errors.Join(err, c.Close())
	}
	r.closer = c
	r.version = "etcd " + status.Version + ", " + module("go.etcd.io/etcd/client/v3")
	r.open = inProcess(connectEtcd)
	r.contenders = func(ctx context.Context, p string) (int, error) { return etcdContenders(ctx, c, p) }
	return nil
}
