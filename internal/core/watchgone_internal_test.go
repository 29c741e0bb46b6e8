package core

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/zktest"
)

// The server does not tell a client that a node has gone which the client may not read. The watch on such a node does not
// stay when this session deletes the node itself.
func TestUnreadableWatchGoes(t *testing.T) {
	server := zktest.Start(t)
	m, err := connect(t.Context(), "zookeeper:2181", WithDialer(server.Dialer()), WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone := []func(string) error{
		func(path string) error { return s.Delete(t.Context(), path, -1) },
		func(path string) error {
			_, err := s.Multi(t.Context(), &zk.DeleteRequest{Path: path, Version: -1})
			return err
		},
	}
	for i := range 10 {
		made, err := s.Create(t.Context(), "/n-", nil, EphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
		s.startWatches(t.Context(), []string{made})
		if err := gone[i%2](made); err != nil {
			t.Fatal(err)
		}
	}
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	if n := len(s.watches.m); n > 0 {
		t.Errorf("%d watches are left", n)
	}
}
