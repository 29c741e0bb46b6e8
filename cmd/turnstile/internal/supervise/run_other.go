//go:build !linux && !darwin && !freebsd

package supervise

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"syscall"
)

// Supported says why Run is not supported on this system.
func Supported() error {
	return errors.New("run is not supported on " + runtime.GOOS + ": it needs process groups and signals")
}

type (
	// Guard is nothing here.
	Guard struct{}
	// Signals catches nothing here.
	Signals struct{}
)

func StartGuard(...*os.File) (*Guard, error)                       { return nil, Supported() }
func (*Guard) Access(json.RawMessage)                              {}
func (*Guard) Note(Session)                                        {}
func (*Guard) Ended() <-chan struct{}                              { return nil }
func (*Guard) Close()                                              {}
func Run(*Guard, Command, Lock, *Signals, Options) (Result, error) { return Result{}, Supported() }
func SignalOf(string) (syscall.Signal, bool)                       { return 0, false }
func Catch() *Signals                                              { return new(Signals) }
func (*Signals) Stop()                                             {}
func Interrupt()                                                   {}
func KeepIgnored()                                                 {}
func IsHelper() bool                                               { return false }
func Helper(Prepare) int                                           { return 0 }
func Find(string, string, bool) (string, error)                    { return "", Supported() }
func OwnGroup() *syscall.SysProcAttr                               { return nil }
