package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// network is a way to the servers.
type network string

const (
	loopback network = "loopback"
	delayed  network = "1 ms each way"
	ensemble network = "three servers"
	counted  network = "counted" // loopback, where requests and bytes are counted
)

// stage has the servers, the networks to them, and the counters.
type stage struct {
	zk      map[network]string
	etcd    map[network]string
	direct  string // the ZooKeeper server, with nothing between
	version string
	dir     string // for files; goes with the stage

	requests *zktest.Proxy     // of counted
	bytes    map[string]*relay // of counted, by address
	closers  []io.Closer
}

func (s *stage) Close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// keep closes what was opened together with the stage.
func keep[T io.Closer](s *stage, c T, err error) (T, error) {
	if err == nil {
		s.closers = append(s.closers, c)
	}
	return c, err
}

// setUp starts what the networks need.
func setUp(ctx context.Context, nets []network, withEtcd bool) (*stage, error) {
	dir, err := os.MkdirTemp("", "bench-rivals-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, zk: map[network]string{}, etcd: map[network]string{}, bytes: map[string]*relay{}}
	err = s.startZooKeeper(ctx, nets)
	if err == nil && withEtcd {
		err = s.startEtcd(ctx, nets)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// seldom is how often servers look for empty directories: not during a run.
const seldom = 24 * time.Hour

func (s *stage) startZooKeeper(ctx context.Context, nets []network) error {
	e, err := zktest.NewReal(zktest.ContainerCheck(seldom))
	if _, err = keep(s, e, err); err != nil {
		return err
	}
	s.direct, s.zk[loopback] = e.Addr(0), e.Addr(0)
	said, err := e.Word(ctx, 0, "srvr")
	if err != nil {
		return err
	}
	_, said, _ = strings.Cut(said, "version: ")
	s.version, _, _ = strings.Cut(said, "-")
	for _, n := range slices.Compact(slices.Sorted(slices.Values(nets))) {
		var err error
		switch n {
		case delayed:
			err = s.delayZooKeeper()
		case counted:
			err = s.countZooKeeper()
		case ensemble:
			err = s.startEnsemble(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) delayZooKeeper() error {
	d, err := startDelayer(true, s.direct)
	if _, err = keep(s, d, err); err != nil {
		return err
	}
	s.zk[delayed] = d.addr
	return nil
}

// countZooKeeper has requests counted by a proxy, and bytes by a relay before it.
func (s *stage) countZooKeeper() error {
	p, err := zktest.NewProxy(s.direct)
	if _, err = keep(s, p, err); err != nil {
		return err
	}
	r, err := startRelay(p.Addr(), 0)
	if _, err = keep(s, r, err); err != nil {
		return err
	}
	s.requests, s.zk[counted], s.bytes[r.Addr()] = p, r.Addr(), r
	return nil
}

// startEnsemble starts three servers. The leader comes last, since most clients are connected to a follower.
func (s *stage) startEnsemble(ctx context.Context) error {
	e, err := zktest.NewReal(zktest.Servers(3), zktest.ContainerCheck(seldom))
	if _, err = keep(s, e, err); err != nil {
		return err
	}
	leader, err := e.Leader(ctx)
	if err != nil {
		return err
	}
	s.zk[ensemble] = strings.Join([]string{e.Addr((leader + 1) % 3), e.Addr((leader + 2) % 3), e.Addr(leader)}, ",")
	return nil
}

func (s *stage) startEtcd(ctx context.Context, nets []network) error {
	e, err := startEtcd(ctx)
	if _, err = keep(s, e, err); err != nil {
		return err
	}
	s.etcd[loopback] = e.addr
	if slices.Contains(nets, delayed) {
		d, err := startDelayer(false, e.addr)
		if _, err = keep(s, d, err); err != nil {
			return err
		}
		s.etcd[delayed] = d.addr
	}
	if slices.Contains(nets, counted) {
		r, err := startRelay(e.addr, 0)
		if _, err = keep(s, r, err); err != nil {
			return err
		}
		s.etcd[counted], s.bytes[r.Addr()] = r.Addr(), r
	}
	return nil
}
