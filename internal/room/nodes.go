package room

// Depart takes note that a node is about to be deleted. Its room is then on its way. n may be nil.
func (a *Account) Depart(n *Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n == nil || n.leaving || n.state == over {
		return
	}
	n.leaving = true
	sum := a.leavingLocked(n)
	*sum = sum.plus(n.size)
}

// IsLeaving reports whether there is a node at a path that is about to go.
func (a *Account) IsLeaving(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.nodes[path]
	return n != nil && n.leaving
}

// Stay undoes Depart: the server refuses to delete the node.
func (a *Account) Stay(n *Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stayLocked(n) {
		a.lookAgainLocked()
	}
}

// Gone takes note that a node is gone. It leaves a node that was created at the same path since then, because
// replies reach the goroutines that wait for them in any order. n may be nil.
func (a *Account) Gone(n *Node) {
	if n == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closeLocked(n)
	a.grantLocked()
}

// Found counts a node of a size, unless it is counted. It takes the room out of v, which may be nil. If that
// has too little, the node counts all the same.
func (a *Account) Found(path string, size Size, v *Reservation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nodes[path] != nil {
		return
	}
	n := &Node{size: size, state: counted}
	if v.open() && size.fits(v.free) {
		v.free = v.free.minus(size)
		v.addLocked(n)
	} else {
		a.used = a.used.plus(size)
		a.lookAgainLocked()
	}
	a.countLocked(n, path)
}
