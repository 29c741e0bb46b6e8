package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// etcdServer is one etcd, as a child process.
type etcdServer struct {
	addr  string
	dir   string
	cmd   *exec.Cmd
	alive io.Closer // its end is the server's
}

// startEtcd starts a server on free ports. If another process takes one of them meanwhile, it tries
// again.
func startEtcd(ctx context.Context) (*etcdServer, error) {
	var errs []error
	for range 3 {
		s, err := tryEtcd(ctx)
		if err == nil {
			return s, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func tryEtcd(ctx context.Context) (*etcdServer, error) {
	program, err := exec.LookPath("etcd")
	if err != nil {
		return nil, err
	}
	clients, err0 := freeAddr()
	peers, err1 := freeAddr()
	// The ZooKeeper servers do not sync their logs to disk. This version of etcd cannot be
	// told not to; in memory it costs nothing.
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = ""
	}
	dir, err2 := os.MkdirTemp(parent, "bench-etcd-")
	if err := errors.Join(err0, err1, err2); err != nil {
		return nil, err
	}
	// The shell kills the server when its input ends: also when this process is killed.
	cmd := exec.Command("sh", "-c", `"$@" & cat; kill -9 $!; wait $!`, "sh", program,
		"--name", "bench", "--data-dir", filepath.Join(dir, "data"), "--log-level", "panic", "--logger", "zap",
		"--listen-client-urls", "http://"+clients, "--advertise-client-urls", "http://"+clients,
		"--listen-peer-urls", "http://"+peers, "--initial-advertise-peer-urls", "http://"+peers,
		"--initial-cluster", "bench=http://"+peers)
	alive, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &etcdServer{addr: clients, dir: dir, cmd: cmd, alive: alive}
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ready waits until the server answers.
func (s *etcdServer) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := dialEtcd(s.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		try, cancel := context.WithTimeout(ctx, time.Second)
		_, err := c.Get(try, "ready")
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

func (s *etcdServer) Close() error {
	_ = s.alive.Close()
	err := s.cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil // killed, as it should be
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("no free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
