package sim

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// Every party acts at moments of its own. The faults have the first tenth of each virtual
// millisecond. Each manager has another tenth, with its workers and its network. An event that a
// seed places is moved to a nanosecond within the tenth of its party. All durations in the
// library are whole milliseconds here, because the session timeouts are multiples of 60 ms and
// the waits of WithRetry are whole milliseconds. So timers that an event starts fire in the same
// tenth. Hence no two parties ever act at the same instant, and the choices of the scheduler and
// of select within one instant concern one manager alone.
const (
	slotCycle = time.Millisecond
	slotWidth = slotCycle / 10
)

// The parties.
const (
	faultSlot    = 0
	firstManager = 1
	operatorSlot = 9
)

// slot returns the first moment at or after t that the party has, at a place within its
// tenth that h chooses.
func slot(t time.Time, party int, h uint64) time.Time {
	// The first nanosecond is the server's, whose clock ticks in whole milliseconds.
	offset := time.Duration(party)*slotWidth + 1 + time.Duration(h%uint64(slotWidth-1))
	at := t.Truncate(slotCycle).Add(offset)
	if at.Before(t) {
		at = at.Add(slotCycle)
	}
	return at
}

// mix hashes a seed and a purpose to a number.
func mix(seed uint64, parts ...any) uint64 {
	f := fnv.New64a()
	var b [8]byte
	num := func(n uint64) {
		binary.LittleEndian.PutUint64(b[:], n)
		_, _ = f.Write(b[:])
	}
	num(seed)
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			_, _ = f.Write([]byte(p))
			num(uint64(len(p)))
		case int:
			num(uint64(p))
		case uint64:
			num(p)
		case time.Time:
			num(uint64(p.UnixNano()))
		default:
			panic("mix: neither string, number nor time")
		}
	}
	h := f.Sum64() // FNV's low bits are poor; this is splitmix's finish
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// between maps a hash to a duration of at least low and less than high.
func between(h uint64, low, high time.Duration) time.Duration {
	return low + time.Duration(h%uint64(high-low))
}
