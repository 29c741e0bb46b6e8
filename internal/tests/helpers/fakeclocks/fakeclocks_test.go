//go:build linux

package fakeclocks

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// A step of the wall clock changes what time.Now shows, and no duration.
func TestWall(t *testing.T) {
	if own, ok := Own(); ok {
		beFaked(t, own)
		return
	}
	longtest.Only(t)
	cmd := exec.Command(Build(t, "./internal/tests/helpers/fakeclocks", true), "-test.run=^TestWall$", "-test.v")
	cmd.Env = append(os.Environ(), New(t).Env())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

func beFaked(t *testing.T, own Clocks) {
	before, lease := time.Now(), clock.Now()
	for _, ahead := range []time.Duration{time.Hour, -time.Hour, 0} {
		if err := own.SetWall(ahead); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		if d := now.Round(0).Sub(before.Round(0)) - ahead; d < 0 || d > time.Minute {
			t.Errorf("%v ahead: time.Now is off by %v", ahead, d)
		}
		if d := now.Sub(before); d < 0 || d > time.Minute {
			t.Errorf("%v ahead: a moment took %v", ahead, d)
		}
		if d := clock.Now().Sub(lease); d < 0 || d > time.Minute {
			t.Errorf("%v ahead: the lease clock went on by %v", ahead, d)
		}
	}
}
