// Package line has things in order, such as calls that wait.
package line

import "slices"

// kept is for how many things room is kept when there are none. What a burst needed beyond that is freed.
const kept = 64

// Line has things in order. The zero value is empty.
type Line[T any] struct {
	all  []T
	gone int // how many at the beginning of all have left
}

// Len returns how many things are there.
func (l *Line[T]) Len() int { return len(l.all) - l.gone }

// First returns the one that has waited for longest.
func (l *Line[T]) First() *T { return &l.all[l.gone] }

// Rest returns all of them, in order.
func (l *Line[T]) Rest() []T { return l.all[l.gone:] }

// Push puts a thing behind the others.
func (l *Line[T]) Push(one T) {
	if l.gone > len(l.all)/2 && len(l.all) == cap(l.all) {
		n := copy(l.all, l.all[l.gone:])
		clear(l.all[n:])
		l.all, l.gone = l.all[:n], 0
	}
	l.all = append(l.all, one)
}

// Pop takes the first.
func (l *Line[T]) Pop() T {
	one := l.all[l.gone]
	clear(l.all[l.gone : l.gone+1])
	if l.gone++; l.gone == len(l.all) {
		l.all, l.gone = l.all[:0], 0
		if cap(l.all) > kept {
			l.all = nil
		}
	}
	return one
}

// Unpop puts things back that were taken from the front, in their order.
func (l *Line[T]) Unpop(all []T) {
	if len(all) <= l.gone {
		l.gone -= copy(l.all[l.gone-len(all):], all)
		return
	}
	l.all, l.gone = append(append([]T(nil), all...), l.Rest()...), 0
}

// Set replaces all things.
func (l *Line[T]) Set(all []T) { l.all, l.gone = all, 0 }

// Remove takes the i-th.
func (l *Line[T]) Remove(i int) T {
	if i == 0 {
		return l.Pop()
	}
	one := l.all[l.gone+i]
	l.all = slices.Delete(l.all, l.gone+i, l.gone+i+1)
	return one
}
