package main

import (
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/bench/internal/usage"
)

func TestJudgeHeap(t *testing.T) {
	samples := func(n int, heap func(i int) uint64) (s []sample) {
		for i := range n {
			s = append(s, sample{Usage: usage.Usage{Heap: heap(i)}})
		}
		return s
	}
	const mib = 1 << 20
	noise := func(i int) uint64 { return 10*mib + uint64(i%3)*mib/4 }
	for _, c := range []struct {
		what    string
		samples []sample
		want    bool
	}{
		{"flat", samples(30, noise), true},
		{"warming up", samples(30, func(i int) uint64 {
			if i < warmUp {
				return mib
			}
			return noise(i)
		}), true},
		{"one that stands out", samples(30, func(i int) uint64 {
			if i == 29 {
				return 100 * mib
			}
			return noise(i)
		}), true},
		{"growing", samples(30, func(i int) uint64 { return noise(i) + uint64(i)*mib/4 }), false},
	} {
		if _, _, err := judgeHeap(c.samples); (err == nil) != c.want {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if _, _, err := judgeHeap(samples(warmUp+heapSamples-1, noise)); !errors.Is(err, errTooShort) {
		t.Errorf("too few: %v", err)
	}
}
