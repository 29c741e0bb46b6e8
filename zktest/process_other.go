//go:build !linux

package zktest

import "os/exec"

// dieWithParent does nothing: only Linux offers it.
func dieWithParent(*exec.Cmd) {}
