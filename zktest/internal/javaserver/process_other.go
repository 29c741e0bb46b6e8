//go:build !linux

package javaserver

import "os/exec"

// dieWithParent does nothing, because only Linux offers this.
func dieWithParent(*exec.Cmd) {}
