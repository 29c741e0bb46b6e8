//go:build linux

package clockoverlap

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/zktest"
)

// rateEnviron is what libfaketime wants to know to change the rate of all of a process's clocks.
func rateEnviron(rate float64) map[string]string {
	if rate == 1 {
		return nil
	}
	return map[string]string{"FAKETIME": fmt.Sprintf("+0 x%v", rate)}
}

// startFaked starts servers under libfaketime, or by themselves if environ is empty.
func startFaked(t *testing.T, environ map[string]string, opts ...zktest.RealOption) *zktest.Ensemble {
	t.Helper()
	if len(environ) == 0 {
		return zktest.StartReal(t, opts...)
	}
	opts = append(opts, zktest.Environ("LD_PRELOAD", libfaketime(t)))
	for key, value := range environ {
		opts = append(opts, zktest.Environ(key, value))
	}
	e := zktest.StartReal(t, opts...)
	// The library leaves files in /dev/shm if the process is killed.
	t.Cleanup(func() {
		var all sync.WaitGroup
		for i := range e.Len() {
			all.Go(func() {
				if err := e.Stop(i); err != nil {
					t.Log(err)
				}
			})
		}
		all.Wait()
	})
	return e
}

func libfaketime(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1") // Debian's
	if len(found) > 0 {
		return found[0]
	}
	if v := os.Getenv(zktest.RequireEnv); v != "" && v != "0" {
		t.Fatal("no libfaketime on this machine: make deps")
	}
	t.Skip("no libfaketime on this machine: make deps")
	return ""
}
