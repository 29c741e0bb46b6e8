package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const claimTimeout = 20 * time.Second // no session may be lost

// claimed makes a node, and returns the claim of s to it and its stat.
func claimed(t *testing.T, s *session.Session, node string) (*core.Claim, *zk.Stat) {
	t.Helper()
	c, err := (*core.Session)(s).Claim(patient(t), node)
	must(t, err)
	_, err = s.Create(patient(t), node, nil, session.Ephemeral)
	must(t, err)
	stat, err := s.Exists(patient(t), node)
	must(t, err)
	if !c.Owns(stat) {
		t.Fatalf("%+v is not owned by the session that made it", stat)
	}
	return c, stat
}

// A session has one claim to a path at a time, until the claim ends.
func TestClaim(t *testing.T) {
	_, m, s := behindProxy(t, claimTimeout)
	const node = "/claim"
	c, err := (*core.Session)(s).Claim(patient(t), node)
	must(t, err)
	if _, ok := (*core.Session)(s).TryClaim(node); ok {
		t.Error("claimed twice")
	}
	other, ok := (*core.Session)(s).TryClaim(node + "s")
	if !ok {
		t.Error("the claim to one path is in the way at another")
	}
	other.End()
	ended, cancel := context.WithCancel(patient(t))
	got := make(chan error, 2)
	claim := func(ctx context.Context) {
		c, err := (*core.Session)(s).Claim(ctx, node)
		if err == nil {
			defer c.End()
		}
		got <- err
	}
	go claim(ended)
	cancel()
	wantErr(t, "Claim", within(t, got, "the end of ctx"), context.Canceled)
	go claim(patient(t))
	c.End()
	must(t, within(t, got, "the next claim"))
	_, err = (*core.Session)(s).Claim(patient(t), "claim")
	wantErr(t, "Claim of a bad path", err, session.ErrInvalid)

	c, err = (*core.Session)(s).Claim(patient(t), node)
	must(t, err)
	defer c.End()
	go claim(patient(t))
	must(t, m.Close())
	wantErr(t, "Claim", within(t, got, "the end of the session"), session.ErrClosed)
}

// Remove deletes the node of the claim and no other node, whatever stat it is given and whatever
// is lost on the way. Then the claim has ended.
func TestClaimRemove(t *testing.T) {
	for _, c := range []struct {
		what string
		// upset does something once the node is there and before its removal, or in it;
		// mend comes after the removal has begun.
		upset, mend func(t *testing.T, node string, p *zktest.Proxy)
		looks       bool // Remove is not told that the node stands
		stays       bool // another's node is there in the end
	}{
		{what: "undisturbed"},
		{what: "not known to stand", looks: true},
		{what: "its data was changed", upset: func(t *testing.T, node string, _ *zktest.Proxy) {
			_, err := testserver.Admin(t).Set(node, []byte("changed"), -1)
			must(t, err)
		}},
		{what: "the delete is lost", upset: func(_ *testing.T, node string, p *zktest.Proxy) {
			p.CutBefore(zktest.On(zktest.OpDelete, node))
		}},
		{what: "its reply is lost", upset: func(_ *testing.T, node string, p *zktest.Proxy) {
			p.CutAfterCommit(zktest.On(zktest.OpDelete, node))
		}},
		{what: "its reply is lost, and then another comes", stays: true,
			upset: func(_ *testing.T, node string, p *zktest.Proxy) {
				p.Refuse(true)
				p.CutAfterCommit(zktest.On(zktest.OpDelete, node))
			},
			mend: func(t *testing.T, node string, p *zktest.Proxy) {
				zktest.Eventually(t, testserver.Patience, "the delete", func() bool {
					there, _, err := testserver.Admin(t).Exists(node)
					return err == nil && !there
				})
				_, err := testserver.Admin(t).Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
				must(t, err)
				p.Heal()
			}},
		{what: "another is there", looks: true, stays: true, upset: func(t *testing.T, node string, _ *zktest.Proxy) {
			testserver.Delete(t, node)
			_, err := testserver.Admin(t).Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			must(t, err)
		}},
		{what: "nothing is there", looks: true, upset: func(t *testing.T, node string, _ *zktest.Proxy) {
			testserver.Delete(t, node)
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			p, _, s := behindProxy(t, claimTimeout, session.WithMaxNodes(1))
			node := dir(t, s) + "/node"
			claim, standing := claimed(t, s, node)
			if c.looks {
				standing = nil
			}
			if c.upset != nil {
				c.upset(t, node, p)
			}
			r := claim.Remove(t.Context(), standing, nil)
			if c.mend != nil {
				c.mend(t, node, p)
			}
			within(t, r.Done(), "the removal")
			must(t, r.Err())
			there, _, err := testserver.Admin(t).Exists(node)
			if err != nil || there != c.stays {
				t.Errorf("there is a node: %v (%v), want %v", there, err, c.stays)
			}
			again, ok := (*core.Session)(s).TryClaim(node)
			if !ok {
				t.Fatal("the claim goes on after the removal")
			}
			again.End()
			if c.stays {
				testserver.Delete(t, node)
			}
			_, err = s.Create(patient(t), node, nil, session.Ephemeral) // there is room for one
			must(t, err)
		})
	}
}
