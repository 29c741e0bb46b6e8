package hold

// habit says whether it is worth while to keep the next place. The Local's mu guards it.
type habit struct {
	skip    int // so many of the next places are not kept
	penalty int // the last value that skip was set to; 0 after a place that was of use
}

// next reports whether the next place is worth keeping. It is called once for each place.
func (h *habit) next() bool {
	if h.skip > 0 {
		h.skip--
		return false
	}
	return true
}

// takenAway takes note that another contender has ended the use of a place that was kept.
func (h *habit) takenAway(used bool) {
	if used {
		*h = habit{}
		return
	}
	h.penalty = min(max(1, 2*h.penalty), maxPenalty)
	h.skip = h.penalty
}

// maxPenalty bounds how many places in a row are not kept.
const maxPenalty = 64
