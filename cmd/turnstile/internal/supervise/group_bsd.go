//go:build darwin || freebsd

package supervise

import "syscall"

// There is no parent-death signal here. The guard alone kills the group when turnstile is dead.
func dieWithParent(*syscall.SysProcAttr) {}

func dieWithStarter() {}

func adopt() {}

func reap(int) {}

func reapOrphans(...int) {}

// alive cannot tell dead processes from others.
func (g *group) alive() bool { return true }

// stopped cannot tell without taking the command's exit status from package os/exec.
func (g *group) stopped() bool { return false }
