package outbox

// keptRoom is for how many things room is kept when there are none. What a burst needed beyond that is freed.
const keptRoom = 64

// line has things in order. The zero value is empty.
type line[T any] struct {
	all  []T
	gone int // how many at the beginning of all have left
}

func (l *line[T]) len() int  { return len(l.all) - l.gone }
func (l *line[T]) first() *T { return &l.all[l.gone] }
func (l *line[T]) rest() []T { return l.all[l.gone:] }

func (l *line[T]) push(one T) {
	if l.gone > len(l.all)/2 && len(l.all) == cap(l.all) {
		n := copy(l.all, l.all[l.gone:])
		clear(l.all[n:])
		l.all, l.gone = l.all[:n], 0
	}
	l.all = append(l.all, one)
}

func (l *line[T]) pop() T {
	one := l.all[l.gone]
	clear(l.all[l.gone : l.gone+1])
	if l.gone++; l.gone == len(l.all) {
		l.all, l.gone = l.all[:0], 0
		if cap(l.all) > keptRoom {
			l.all = nil
		}
	}
	return one
}

// unpop puts things back that were taken from the front, in their order.
func (l *line[T]) unpop(all []T) {
	if len(all) <= l.gone {
		l.gone -= copy(l.all[l.gone-len(all):], all)
		return
	}
	l.all, l.gone = append(append([]T(nil), all...), l.rest()...), 0
}

// set replaces all things.
func (l *line[T]) set(all []T) { l.all, l.gone = all, 0 }
