//go:build !unix

package main

import (
	"errors"
	"time"
)

func processorOfProcess() (time.Duration, error) { return 0, errors.ErrUnsupported }
