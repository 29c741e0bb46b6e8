package cli

import (
	"fmt"
	"io"
	"sync"
)

// results is the standard output of a program. It keeps the first error of a write: a list that could not be written is no
// success.
type results struct {
	to  io.Writer
	mu  sync.Mutex
	err error
}

func (r *results) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	return n, err
}

// failure returns the first error, with its exit status.
func (r *results) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return nil
	}
	return withCode(codeFailed, fmt.Errorf("write the results: %w", r.err))
}
