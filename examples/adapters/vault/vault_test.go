package vault_test

import (
	"testing"

	"github.com/hashicorp/vault/sdk/physical"

	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	"github.com/turnstile-go/turnstile/examples/adapters/vault"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

var _ physical.HABackend = (*vault.Backend)(nil)

// Vault's own test.
func TestExercise(t *testing.T) {
	physical.ExerciseHABackend(t, vault.New(ensemble.Start(t).Manager, "/vault"), vault.New(ensemble.Start(t).Manager, "/vault"))
}

// A node whose session is lost is told so. The node that waited is active then, and the first one can campaign again.
func TestLoss(t *testing.T) {
	process := ensemble.Start(t)
	one := ensemble.Must(vault.New(process.Manager, "/"+t.Name()).LockWith("core/lock", "one"))
	two := ensemble.Must(vault.New(ensemble.Start(t).Manager, "/"+t.Name()).LockWith("core/lock", "two"))
	lost := ensemble.Must(one.Lock(nil))
	if _, err := one.Lock(nil); err == nil {
		t.Error("locked twice")
	}
	leads := make(chan struct{})
	go func() {
		defer close(leads)
		if c, err := two.Lock(nil); c == nil || err != nil {
			t.Errorf("the second node: %v, %v", c, err)
		}
	}()
	process.Expire(t)
	ensemble.Wait(t, lost, "the first node is told of its loss")
	ensemble.Wait(t, leads, "the second node is active")
	for _, l := range []physical.Lock{one, two} {
		if held, value, err := l.Value(); !held || value != "two" || err != nil {
			t.Errorf("the active node is %q (%t, %v)", value, held, err)
		}
	}
	ensemble.OK(t, one.Unlock())
	ensemble.OK(t, two.Unlock())
	if held, _, err := two.Value(); held || err != nil {
		t.Errorf("after Unlock: %t, %v", held, err)
	}
	ensemble.Must(one.Lock(nil))
	ensemble.OK(t, one.Unlock())
}
