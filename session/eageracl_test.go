package session_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// With enableEagerACLCheck, a server refuses a write for lack of rights, or for a malformed ACL,
// as soon as it reads it. That is before its answers to earlier writes, which wait for a quorum.
// It breaks no connection, and the other requests succeed.
func TestEagerACLCheck(t *testing.T) {
	longtest.Only(t)
	t.Parallel() // it has servers of its own
	ensemble := zktest.StartReal(t, zktest.Nodes(3), zktest.Property("enableEagerACLCheck", "true"))
	leader, err := ensemble.Leader(patient(t))
	must(t, err)
	malformed := session.WithACL(zk.ACL{Perms: zk.PermAll, Scheme: "digest", ID: "no colon"})
	for server, role := range map[int]string{leader: "leader", (leader + 1) % 3: "follower"} {
		admin, _, err := zk.Connect([]string{ensemble.Addr(server)}, testserver.Patience, zk.WithLogger(silent{}))
		must(t, err)
		defer admin.Close()
		open, locked := fmt.Sprintf("/open-%d", server), fmt.Sprintf("/locked-%d", server)
		for path, perms := range map[string]int32{open: zk.PermAll, locked: zk.PermRead} {
			_, err := admin.Create(path, nil, 0, zk.WorldACL(perms))
			must(t, err)
		}
		for name, c := range map[string]struct {
			opts []session.Option
			do   func(s *session.Session) error
			want error
		}{
			"create": {nil, func(s *session.Session) error {
				_, err := s.Create(patient(t), locked+"/n", nil, session.Persistent)
				return err
			}, zk.ErrNoAuth},
			"delete": {nil, func(s *session.Session) error { return s.Delete(patient(t), locked+"/n", -1) }, zk.ErrNoAuth},
			"set": {nil, func(s *session.Session) error {
				_, err := s.Set(patient(t), locked, nil, -1)
				return err
			}, zk.ErrNoAuth},
			"multi": {nil, func(s *session.Session) error {
				_, err := s.Multi(patient(t), &zk.DeleteRequest{Path: locked + "/n", Version: -1})
				return err
			}, zk.ErrNoAuth},
			"create with a malformed ACL": {[]session.Option{malformed}, func(s *session.Session) error {
				_, err := s.Create(patient(t), open+"/m", nil, session.Persistent)
				return err
			}, zk.ErrInvalidACL},
		} {
			t.Run(role+"/"+name, func(t *testing.T) {
				var told history
				m := testserver.Connect(t, ensemble.Addr(server), append(c.opts, session.WithTimeout(testserver.Patience))...)
				m.Subscribe(told.add)
				s := testserver.Session(t, m)
				var enough atomic.Bool
				var writers sync.WaitGroup
				for range 8 {
					writers.Go(func() {
						for !enough.Load() {
							if _, err := s.Set(patient(t), open, nil, -1); err != nil {
								t.Errorf("a write beside: %v", err)
								return
							}
						}
					})
				}
				for range 20 {
					wantErr(t, name, c.do(s), c.want)
					time.Sleep(time.Millisecond) //nolint:forbidigo // spreads the tries over time, and waits for nothing
				}
				enough.Store(true)
				writers.Wait()
				if states := told.states(); !slices.Equal(states, []session.State{session.Connected}) {
					t.Errorf("states %v", states)
				}
			})
		}
	}
}
