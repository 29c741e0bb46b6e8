package election_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/session"
)

const switchPath = "/live"

// Each switch moves the leadership once, to the colour that the switch names, although each leader takes a while to end its
// work. When a leader dies, another replica of its colour leads. A short disconnection moves nothing, and with a colour that
// nobody has nobody leads.
func TestBlueGreen(t *testing.T) {
	for _, slow := range []time.Duration{0, 3 * time.Second} {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			inBubble(t, func(t *world) {
				t.Cleanup(func() { pass(slow) }) // in which the last leader ends
				operator := t.session()
				_, err := operator.Create(t.Context(), switchPath, []byte("blue"), session.Persistent)
				must(t, err)
				var led []string // the colours of all terms in which work was called
				var present context.Context
				var leader *session.Manager
				for i := range 6 {
					d := &deployment{t.election(), strings.Fields("blue green")[i%2], switchPath}
					go func() {
						err := d.lead(t.Context(), func(ctx context.Context) error {
							if present != nil && present.Err() == nil {
								t.Error("two lead")
							}
							led, present, leader = append(led, d.colour), ctx, d.Manager()
							<-ctx.Done()
							time.Sleep(slow)
							return nil
						})
						if t.Context().Err() == nil {
							t.Errorf("a replica has ended: %v", err)
						}
					}()
				}
				want := []string{"blue"}
				check := func() {
					t.Helper()
					pass(slow + soon)
					if diff := cmp.Diff(want, led); diff != "" {
						t.Fatalf("terms (-want +got):\n%s", diff)
					}
				}
				set := func(colour string) {
					_, err := operator.Set(t.Context(), switchPath, []byte(colour), -1)
					must(t, err)
				}
				check()
				for i := range 10 {
					colour := strings.Fields("green blue")[i%2]
					set(colour)
					want = append(want, colour)
					check()
				}
				present = nil // a leader whose session an operator ends learns of it a moment later
				t.expire(leader)
				want = append(want, "blue")
				check()
				t.server.Disconnect() // short: nothing moves
				check()
				set("neither")
				check()
				set("green")
				want = append(want, "green")
				check()
			})
		})
	}
}

// Without a switch nobody leads, and the replicas say why.
func TestBlueGreenNoSwitch(t *testing.T) {
	inBubble(t, func(t *world) {
		d := &deployment{t.election(), "blue", switchPath}
		err := d.lead(t.Context(), func(context.Context) error { t.Error("leads"); return nil })
		wantErr(t, "lead", err, zk.ErrNoNode)
	})
}
