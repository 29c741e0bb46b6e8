//go:build !unix

package javaserver

import (
	"errors"
	"fmt"
)

func (p *process) pause() error {
	return fmt.Errorf("zktest: pausing a process: %w", errors.ErrUnsupported)
}

func (p *process) resume() error { return nil }
