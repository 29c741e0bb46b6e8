//go:build darwin || freebsd

package supervise

import (
	"errors"
	"syscall"
)

// Descendants that leave the command's group are not found here.
const adopts = false

func adopt() error { return errors.New("this system does not say which processes these are") }

func lookAround() error { return nil }

// orphaned is not known here.
func orphaned() bool { return false }

// There is no parent-death signal here. The guard alone ends the command when turnstile is dead.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

type process struct{ pid, parent, group int }

func (process) String() string { return "" }

func descendants(map[int]bool) []process { return nil }
