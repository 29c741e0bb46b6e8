package core

import (
	"slices"
	"sync"
)

// underway has the removals that have not ended, by path. One that the servers have refused goes on.
type underway struct {
	mu sync.Mutex
	m  map[string][]*Removal
}

func (u *underway) add(path string, r *Removal) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.m == nil {
		u.m = make(map[string][]*Removal)
	}
	u.m[path] = append(u.m[path], r)
}

func (u *underway) end(path string, r *Removal) {
	u.mu.Lock()
	defer u.mu.Unlock()
	rest := slices.DeleteFunc(u.m[path], func(other *Removal) bool { return other == r })
	if len(rest) > 0 {
		u.m[path] = rest
	} else {
		delete(u.m, path)
	}
}

// at returns a removal of the node at a path, or nil.
func (u *underway) at(path string) *Removal {
	u.mu.Lock()
	defer u.mu.Unlock()
	if all := u.m[path]; len(all) > 0 {
		return all[0]
	}
	return nil
}
