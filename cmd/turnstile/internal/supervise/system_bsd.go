//go:build darwin || freebsd

package supervise

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	getModes, setModes = unix.TIOCGETA, unix.TIOCSETA
	clockID            = unix.CLOCK_MONOTONIC
	adopts             = false // descendants that leave the command's group are not found here
)

func adopt() error { return errors.New("this system does not say which processes these are") }

// There is no parent-death signal here. The guard alone ends the command when turnstile is dead.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

func rename(string)                   {}
func newAlarm() int                   { return -1 }
func setAlarm(int, time.Duration)     {}
func lookAround() error               { return nil }
func orphaned() bool                  { return false }
func callerIgnores() []syscall.Signal { return nil }

type process struct{ pid, parent, group int }

func (process) String() string { return "" }

func descendants(map[int]bool) []process { return nil }
