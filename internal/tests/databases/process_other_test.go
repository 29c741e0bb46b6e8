//go:build !linux

package databases

import "syscall"

func attributes(string) (*syscall.SysProcAttr, error) { return nil, nil }
