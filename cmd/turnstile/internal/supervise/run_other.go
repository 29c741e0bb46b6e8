//go:build !linux && !darwin && !freebsd

package supervise

import (
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"syscall"
)

// Supported says why Run is not supported on this system.
func Supported() error {
	return errors.New("run is not supported on " + runtime.GOOS + ": it needs process groups and signals")
}

// Guard is nothing here.
type Guard struct{}

// Streams are the command's.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// StartGuard returns the error of [Supported].
func StartGuard(Streams) (*Guard, error) { return nil, Supported() }

// Access does nothing.
func (*Guard) Access(json.RawMessage) {}

// Note does nothing.
func (*Guard) Note(Session) {}

// Close does nothing.
func (*Guard) Close() {}

// Run returns the error of [Supported].
func Run(*Guard, Command, Lock, *Signals, Options) (Result, error) { return Result{}, Supported() }

// SignalOf knows no signals: no command runs here.
func SignalOf(string) (syscall.Signal, bool) { return 0, false }

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
func Helper(Prepare) int { return 0 }
