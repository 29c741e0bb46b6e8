//go:build unix

package cli

import "syscall"

// ownGroup keeps the signals of a terminal from a process.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
