//go:build !linux

package main

import "time"

func pause(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}
