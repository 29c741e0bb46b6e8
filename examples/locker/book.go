package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Book gives out invoice numbers, each once. It was written for one process and does not know
// of ZooKeeper.
type Book struct {
	mu   sync.Locker // guards the file
	file string
}

// NewBook returns a book that keeps its last number in a file.
func NewBook(mu sync.Locker, file string) *Book { return &Book{mu: mu, file: file} }

// Next returns the next number.
func (b *Book) Next() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, err := os.ReadFile(b.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	last := 0
	if len(data) > 0 {
		if last, err = strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
			return 0, fmt.Errorf("%s: %w", b.file, err)
		}
	}
	return last + 1, os.WriteFile(b.file, fmt.Appendln(nil, last+1), 0o600)
}
