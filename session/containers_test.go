package session_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// counting counts the dials.
func counting(d dial, n *atomic.Int64) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		n.Add(1)
		return d(ctx, network, addr)
	}
}

// mute is a connection through a proxy that hangs up, without an answer, on a request to create a
// container.
type mute struct{ net.Conn }

func (c mute) Write(b []byte) (int, error) {
	for rest := b; len(rest) >= 12; rest = rest[4+binary.BigEndian.Uint32(rest):] { // one write can have several frames
		if zktest.Op(binary.BigEndian.Uint32(rest[8:])) == zktest.OpCreateContainer {
			c.Close()
			return len(b), nil
		}
	}
	return c.Conn.Write(b)
}

func muted(d dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d(ctx, network, addr)
		if err == nil {
			c = mute{c}
		}
		return c, err
	}
}

// makeDirectories makes n directories at once.
func makeDirectories(t *testing.T, s *session.Session, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := (*core.Session)(s).MakeParents(ctx, fmt.Sprintf("/locks%d/a", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// A manager learns once that its servers have no containers. It does not lose a connection for each
// directory, and warns once. Some servers say that they do not know the request before they hang up, and
// others say nothing.
func TestManyPathsWithoutContainers(t *testing.T) {
	for name, c := range map[string]struct {
		options []zktest.Option
		through func(dial) dial
		dials   int64
	}{
		"answered": {[]zktest.Option{zktest.NoContainers()}, func(d dial) dial { return d }, 2},
		"silent":   {nil, muted, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, c.options...)
				var dials atomic.Int64
				log := new(logText)
				m, s := virtually(t, "any:2181", c.through(counting(srv.Dialer(), &dials)),
					session.WithTimeout(time.Minute), session.WithTickTime(2*time.Second),
					session.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
				makeDirectories(t, s, 100)
				must(t, m.Close())
				if n := dials.Load(); n != c.dials {
					t.Errorf("%d dials, want %d", n, c.dials)
				}
				if n := strings.Count(log.String(), "no container nodes"); n != 1 {
					t.Errorf("%d warnings in\n%s", n, log.String())
				}
			})
		})
	}
}

// Hang-ups that are not due to containers do not end their use: after an answer the count begins again.
func TestHangUpsNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, s := virtually(t, "any:2181", srv.Dialer(), session.WithTimeout(time.Minute))
		for i := range 10 {
			creates := zktest.Any(zktest.OpCreateContainer)
			first, second := srv.CutBefore(creates), srv.CutBefore(creates)
			must(t, (*core.Session)(s).MakeParents(t.Context(), fmt.Sprintf("/now-and-then/%d", i)))
			if n := srv.Count(zktest.On(zktest.OpCreate, "/now")); n > 0 {
				t.Fatalf("after %d times: %d persistent nodes", i, n)
			}
			<-first.Hit()
			<-second.Hit()
		}
	})
}

// Connections that end before they have answered anything say nothing of containers, however many there are in a row.
func TestHangUpsOfConnectionsThatDoNotWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, s := virtually(t, "any:2181", srv.Dialer(), session.WithTimeout(time.Minute))
		var cuts []*zktest.Fault
		for range 5 {
			cuts = append(cuts, srv.CutBefore(zktest.Any(zktest.OpExists)))
		}
		makeDirectories(t, s, 1)
		for i, cut := range cuts {
			select {
			case <-cut.Hit():
			default:
				t.Errorf("cut %d has met no look ahead of a create", i)
			}
		}
		if n := srv.Count(zktest.On(zktest.OpCreate, "/locks0")); n > 0 {
			t.Errorf("%d persistent nodes", n)
		}
	})
}

// While the answer to the first create of a container is due, the other creates wait, and end with their
// contexts.
func TestContainerCreateIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, s := virtually(t, "any:2181", srv.Dialer(), session.WithTimeout(time.Minute))
		held := srv.HoldReply(zktest.Any(zktest.OpCreateContainer))
		var first sync.WaitGroup
		first.Go(func() { makeDirectories(t, s, 1) })
		<-held.Hit()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, "a second one", (*core.Session)(s).MakeParents(ctx, "/second"), context.DeadlineExceeded)
		if n := srv.Count(zktest.Any(zktest.OpCreateContainer)); n != 1 {
			t.Errorf("%d creates of containers", n)
		}
		held.Release()
		first.Wait()
		makeDirectories(t, s, 20)
	})
}

// Requests that the server does not implement have an error of their own.
func TestUnimplemented(t *testing.T) {
	srv := zktest.Start(t, zktest.NoContainers())
	s := testserver.Session(t, testserver.Connect(t, "any:2181", session.WithDialer(srv.Dialer())))
	_, err := s.Create(patient(t), "/c", nil, session.Container)
	wantErr(t, "a container", err, session.ErrUnimplemented)
	if strings.Contains(err.Error(), "unknown") {
		t.Errorf("%v", err)
	}
}

// TTL nodes are disabled on servers by default. The server refuses them, and the connection stays.
func TestTTLDisabled(t *testing.T) {
	longtest.Only(t) // TestUnimplemented has the error
	real := zktest.StartReal(t, zktest.Property("extendedTypesEnabled", "false"))
	s := testserver.Session(t, testserver.Connect(t, real.ConnectString()))
	_, err := s.Create(patient(t), "/ttl", nil, session.PersistentTTL(time.Hour))
	wantErr(t, "a TTL node", err, session.ErrUnimplemented)
}
