package election_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// colours are three replicas of each colour, in virtual time.
type colours struct {
	server *zktest.Server
	m      *session.Manager // of the operator

	mu      sync.Mutex
	led     []string // the colours of all terms in which work was called
	present context.Context
	leader  *session.Manager
}

const switchPath = "/live"

func (c *colours) set(t *testing.T, colour string) {
	t.Helper()
	_, err := testserver.Session(t, c.m).Set(t.Context(), switchPath, []byte(colour), -1)
	must(t, err)
}

func (c *colours) want(t *testing.T, led ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if diff := cmp.Diff(led, c.led); diff != "" {
		t.Fatalf("terms (-want +got):\n%s", diff)
	}
}

// inColours starts the replicas, with blue live. Each takes slow to end its work.
func inColours(t *testing.T, slow time.Duration, f func(t *testing.T, c *colours)) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
		c := &colours{server: server, m: connect()}
		_, err := testserver.Session(t, c.m).Create(t.Context(), switchPath, []byte("blue"), session.Persistent)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var replicas sync.WaitGroup
		defer replicas.Wait()
		defer cancel()
		for i := range 6 {
			m := connect()
			d := &deployment{newElection(t, m, dir), strings.Fields("blue green")[i%2], switchPath}
			replicas.Go(func() {
				err := d.lead(ctx, func(ctx context.Context) error {
					c.mu.Lock()
					if c.present != nil && c.present.Err() == nil {
						t.Error("two lead")
					}
					c.led, c.present, c.leader = append(c.led, d.colour), ctx, m
					c.mu.Unlock()
					<-ctx.Done()
					time.Sleep(slow)
					return nil
				})
				if ctx.Err() == nil {
					t.Errorf("a replica has ended: %v", err)
				}
			})
		}
		pass(time.Second)
		f(t, c)
	})
}

// Each switch moves the leadership once, to the colour that the switch names.
func TestBlueGreen(t *testing.T) {
	for _, slow := range []time.Duration{0, 3 * time.Second} {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			inColours(t, slow, func(t *testing.T, c *colours) {
				want := []string{"blue"}
				c.want(t, want...)
				for i := range 10 {
					colour := strings.Fields("green blue")[i%2]
					c.set(t, colour)
					pass(slow + 2*time.Second)
					want = append(want, colour)
					c.want(t, want...)
				}
			})
		})
	}
}

// When a leader dies, another replica of its colour leads. A short disconnection moves nothing, and with a colour that
// nobody has nobody leads.
func TestBlueGreenFaults(t *testing.T) {
	inColours(t, 0, func(t *testing.T, c *colours) {
		c.mu.Lock()
		c.present = nil // a leader whose session an operator ends learns of it a moment later
		c.mu.Unlock()
		must(t, c.server.Expire(t.Context(), testserver.Session(t, c.leader).ID()))
		pass(10 * time.Second)
		c.want(t, "blue", "blue")
		c.server.Disconnect() // short: nothing moves
		pass(10 * time.Second)
		c.want(t, "blue", "blue")
		c.set(t, "neither")
		pass(10 * time.Second)
		c.want(t, "blue", "blue")
		c.set(t, "green")
		pass(10 * time.Second)
		c.want(t, "blue", "blue", "green")
	})
}

// Without a switch nobody leads, and the replicas say why.
func TestBlueGreenNoSwitch(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func() *session.Manager) {
		d := &deployment{newElection(t, connect(), dir), "blue", switchPath}
		err := d.lead(t.Context(), func(context.Context) error { t.Error("leads"); return nil })
		wantErr(t, "lead", err, zk.ErrNoNode)
	})
}
