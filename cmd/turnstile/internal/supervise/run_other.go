//go:build !linux && !darwin && !freebsd

package supervise

import (
	"errors"
	"runtime"
)

// Supported says why Run is not supported on this system.
func Supported() error {
	return errors.New("run is not supported on " + runtime.GOOS + ": it needs process groups and signals")
}

// Run returns the error of [Supported].
func Run(Command, Lock, *Signals, Options) (Result, error) { return Result{}, Supported() }

// Signals catches nothing here.
type Signals struct{}

// Catch catches nothing.
func Catch() *Signals { return new(Signals) }

// Stop does nothing.
func (*Signals) Stop() {}

// Interrupt does nothing: no command runs here.
func Interrupt() {}

// IsHelper returns false: there is no helper here.
func IsHelper() bool { return false }

// Helper does nothing.
func Helper() int { return 0 }
