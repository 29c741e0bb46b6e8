package zktest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest/internal/fourletter"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// patience bounds waits for real servers.
const patience = 30 * time.Second

// The longest end of a session that a real server reads again is the same as here: it starts again after that, and not
// after one byte more.
func TestSessionEndLikeReal(t *testing.T) {
	longtest.Only(t)
	for _, size := range []int{5120, 5121} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			real := StartReal(t, Environ("JAVA_TOOL_OPTIONS", "-Djute.maxbuffer=4096 -Dzookeeper.jute.maxbuffer.extrasize=1024"))
			ours, err := New(versionOf(t, real), MaxPacket(4096), ExtraPacket(1024))
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			for _, addr := range []string{ours.Addr(), real.Addr(0)} {
				w := newWorld(t, func() (net.Conn, error) { return net.Dial("tcp", addr) })
				w.join()
				for i, left := 0, size-48; left > 0; i++ {
					n := min(left, 104)
					if rest := left - n; rest > 0 && rest < 20 {
						n -= 20
					}
					w.must(mkdir(0, OpCreate, fmt.Sprintf("/%0*d", n-5, i), 1, znode.OpenACL))
					left -= n
				}
				w.run(step{what: stepClose})
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := real.Stop(0); err != nil {
				t.Fatal(err)
			}
			ours.StopServer(0)
			errReal, errOurs := real.Start(ctx, 0), ours.StartServer(0)
			if want := size > 5120; (errReal != nil) != want || (errOurs != nil) != want {
				t.Errorf("real: %v\nours: %v", errReal, errOurs)
			}
			if says := fmt.Sprint("Unreasonable length = ", size); errOurs != nil && (!strings.Contains(real.Log(0), says) || !strings.Contains(errOurs.Error(), says)) {
				t.Errorf("the server does not say %q, or ours: %v", says, errOurs)
			}
		})
	}
}

// What becomes of an ensemble after such an end: one leader after the other cannot read its own log, until no majority is
// left.
func TestSessionEndOfEnsembleLikeReal(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	real := StartReal(t, Nodes(3), Environ("JAVA_TOOL_OPTIONS", "-Djute.maxbuffer=4096"))
	conn, err := net.Dial("tcp", real.Addr(0))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	ask := func(frame []byte) {
		if _, err := conn.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	ask(connectFrame(0, make([]byte, 16), 2000))
	for i := range 90 {
		e := znode.NewFrame()
		e.Int32(int32(i + 1))
		e.Int32(int32(OpCreate))
		e.B = append(e.B, mkdir(0, OpCreate, fmt.Sprintf("/%099d", i), 1, znode.OpenACL).body(0)...)
		ask(e.Frame())
	}
	for range 91 {
		if _, err := readFrame(conn); err != nil {
			t.Fatal(err)
		}
	}
	ask(closeFrame(91))
	broken := make(map[int]bool)
	Eventually(t, 2*patience, "the end of all service", func() bool {
		serving := 0
		for i := range 3 {
			if strings.Contains(real.Log(i), "Unable to load database on disk") {
				broken[i] = true
			}
			if _, err := fourletter.Mode(t.Context(), real.Addr(i)); err == nil {
				serving++
			}
		}
		return serving == 0 && len(broken) == 2
	})
	for i := range 3 {
		if broken[i] {
			if err := real.Kill(i); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if err := real.Start(ctx, i); err == nil {
				t.Errorf("server %d serves clients again", i)
			}
			cancel()
		}
	}
}

// A real leader without answers from its followers reads as many requests as ours.
func TestOutstandingLikeReal(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	// The ticks are long so that the leader does not notice that its followers stand still.
	real := StartReal(t, Nodes(3), TickTime(20*time.Second), Property("globalOutstandingLimit", "20"))
	ours := Start(t, versionOf(t, real), Servers(3), TickTime(20*time.Second), OutstandingLimit(20))
	leader, err := real.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hold := map[string]func(on bool) error{
		"ours": func(on bool) error {
			for i := range 2 {
				if on {
					ours.HoldServer(i)
				} else {
					ours.ReleaseServer(i)
				}
			}
			return nil
		},
		"real": func(on bool) error {
			for i := range 3 {
				if i == leader {
					continue
				}
				change := real.Resume
				if on {
					change = real.Pause
				}
				if err := change(i); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for name, addr := range map[string]string{"ours": ours.ServerAddr(2), "real": real.Addr(leader)} {
		t.Run(name, func(t *testing.T) {
			outstanding := func() string {
				text, err := fourletter.Ask(t.Context(), addr, "srvr")
				if err != nil {
					t.Fatal(err)
				}
				_, rest, _ := strings.Cut(text, "Outstanding: ")
				n, _, _ := strings.Cut(rest, "\n")
				return n
			}
			w := newWorld(t, func() (net.Conn, error) { return net.Dial("tcp", addr) })
			c := w.join()
			w.must(mkdir(0, OpCreate, "/n", 0, znode.OpenACL))
			if err := hold[name](true); err != nil {
				t.Fatal(err)
			}
			const all = 30
			for i := range all {
				e := znode.NewFrame()
				e.Int32(int32(100 + i))
				e.Int32(int32(OpSetData))
				e.B = append(e.B, set(0, "/n", nil, -1).body(0)...)
				if _, err := c.conn.Write(e.Frame()); err != nil {
					t.Fatal(err)
				}
				if want := fmt.Sprint(i + 1); i < 12 { // one after another, because a real server counts a little late
					Eventually(t, patience, want+" requests in process", func() bool { return outstanding() == want })
				}
			}
			if got := outstanding(); got != "12" {
				t.Errorf("%s requests in process", got)
			}
			if err := hold[name](false); err != nil {
				t.Fatal(err)
			}
			_ = c.conn.SetDeadline(time.Now().Add(patience))
			for i := range all {
				frame, err := readFrame(c.in)
				if err != nil {
					t.Fatal(err)
				}
				d := znode.Decode(frame)
				if xid, _, code := d.Int32(), d.Int64(), znode.Code(d.Int32()); xid != int32(100+i) || code != znode.CodeOK {
					t.Errorf("answer %d is to %d: %v", i, xid, code)
				}
			}
		})
	}
}
