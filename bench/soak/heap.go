package main

import (
	"errors"
	"fmt"
	"slices"
)

const (
	warmUp      = 2       // settled samples that do not count: of what stays for good
	heapSamples = 6       // it takes so many more to tell growth from noise
	heapSlack   = 1 << 20 // bytes; ten times what the medians of two thirds differ by otherwise
)

var errTooShort = errors.New("too few samples to judge the heap by")

// judgeHeap compares the median heap of the last third of the settled samples with that of
// the first third after the warm-up. A leak makes it grow with every cycle.
func judgeHeap(settled []sample) (first, last uint64, err error) {
	if len(settled) < warmUp+heapSamples {
		return 0, 0, errTooShort
	}
	settled = settled[warmUp:]
	third := len(settled) / 3
	first, last = medianHeap(settled[:third]), medianHeap(settled[len(settled)-third:])
	if last > first+heapSlack {
		return first, last, fmt.Errorf("heap grows: a median of %d bytes in the first third, %d in the last", first, last)
	}
	return first, last, nil
}

func medianHeap(samples []sample) uint64 {
	heaps := make([]uint64, len(samples))
	for i, s := range samples {
		heaps[i] = s.Heap
	}
	slices.Sort(heaps)
	return heaps[len(heaps)/2]
}
