package javaserver

import (
	"bytes"
	"os"
	"strconv"
)

// stopped reports whether every thread of a process is stopped.
func stopped(pid int) bool {
	threads := glob("/proc", strconv.Itoa(pid), "task", "*", "stat")
	for _, name := range threads {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		// The format is "pid (name) state …", where the name can contain any character.
		state := stat[bytes.LastIndexByte(stat, ')')+1:]
		if !bytes.HasPrefix(state, []byte(" T")) {
			return false
		}
	}
	return len(threads) > 0
}
