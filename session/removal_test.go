package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A removal goes on without a connection, after a lost reply and after the end of its context, until the node is gone.
func TestRemove(t *testing.T) {
	for name, breaks := range map[string]func(*zktest.Server){
		"at once":            func(*zktest.Server) {},
		"the reply is lost":  func(srv *zktest.Server) { srv.CutAfterCommit(zktest.On(zktest.OpDelete, "/n")) },
		"the request is cut": func(srv *zktest.Server) { srv.CutBefore(zktest.On(zktest.OpDelete, "/n")) },
		"without a connection": func(srv *zktest.Server) {
			srv.Refuse(true)
			srv.Disconnect()
			time.AfterFunc(2*time.Second, func() { srv.Refuse(false) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				_, s := virtually(t, "h:1", srv.Dialer(), session.WithNodeLimits(1, 1<<20))
				_, err := makeNode(t.Context(), s, "/n", nil)
				must(t, err)
				breaks(srv)
				synctest.Wait()
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				began := time.Now()
				r := s.Remove(ended, "/n")
				if d := time.Since(began); d > 0 {
					t.Errorf("Remove took %v", d)
				}
				must(t, r.Err())
				<-r.Done()
				must(t, r.Err())
				stat, err := s.Exists(t.Context(), "/n")
				if must(t, err); stat != nil {
					t.Error("the node is there")
				}
				_, err = makeNode(t.Context(), s, "/n", nil) // there is room for it
				must(t, err)
				again := s.Remove(t.Context(), "/none")
				<-again.Done()
				must(t, again.Err())
			})
		})
	}
}

// A removal whose session ends has the error of the session, and one of a path that is not valid fails at once.
func TestRemoveFails(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	r := s.Remove(patient(t), "no/path")
	within(t, r.Done(), "the end of a removal of a bad path")
	wantErr(t, "a bad path", r.Err(), session.ErrInvalid)
	p.Refuse(true)
	p.Disconnect()
	r = s.Remove(patient(t), dirOf(t)+"/n")
	p.Refuse(false)
	must(t, p.Expire(patient(t), s.ID()))
	within(t, r.Done(), "the end of a removal of a lost session")
	if err := r.Err(); err != nil { // the delete can have been faster
		wantErr(t, "a lost session", err, session.ErrLost)
	}
	r = s.Remove(patient(t), dirOf(t)+"/n")
	within(t, r.Done(), "the end of a removal of an ended session")
	wantErr(t, "an ended session", r.Err(), session.ErrLost)
}

func dirOf(t *testing.T) string { return testserver.Path(t) }

// A refusal is reported at once. The removal goes on, and succeeds when the client has the right again.
func TestRemoveRefused(t *testing.T) {
	ctx, admin := patient(t), testserver.Admin(t)
	_, _, s := behindProxy(t, 20*time.Second)
	d := dir(t, s)
	node, err := makeNode(ctx, s, d+"/n", nil)
	must(t, err)
	_, err = admin.SetACL(d, zk.WorldACL(zk.PermRead|zk.PermAdmin), -1)
	must(t, err)
	r := s.Remove(ctx, node)
	within(t, r.Done(), "the refusal")
	wantErr(t, "Remove", r.Err(), zk.ErrNoAuth)
	_, err = admin.SetACL(d, zk.WorldACL(zk.PermAll), -1)
	must(t, err)
	testserver.WaitChildren(t, d, 0)
}
