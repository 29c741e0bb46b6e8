//go:build linux

package nemesis

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

// place is a lock in a worker's arguments.
type place struct{ path, register, journal string }

func (p place) name() string { return path.Base(p.path) }

// settings are a worker's arguments, in this order, of Go's and of Java's. Where there are
// several locks, the paths, registers and journals are lists with a comma between.
type settings struct {
	servers  string
	path     string // of the lock
	register string
	journal  string
	worker   int
	life     int
	seed     uint64
	timeout  time.Duration // of the session, in milliseconds as an argument
}

func (s *settings) args() []string {
	return []string{
		s.servers, s.path, s.register, s.journal, strconv.Itoa(s.worker), strconv.Itoa(s.life),
		strconv.FormatUint(s.seed, 10), strconv.FormatInt(s.timeout.Milliseconds(), 10),
	}
}

func parseSettings(args []string) (*settings, error) {
	if len(args) != 8 {
		return nil, fmt.Errorf("%d arguments, want 8", len(args))
	}
	s := &settings{servers: args[0], path: args[1], register: args[2], journal: args[3]}
	var millis int
	_, err := fmt.Sscan(args[4]+" "+args[5]+" "+args[6]+" "+args[7], &s.worker, &s.life, &s.seed, &millis)
	s.timeout = time.Duration(millis) * time.Millisecond
	return s, err
}

// setPlaces is the reverse of places.
func (s *settings) setPlaces(all []place) {
	var paths, registers, journals []string
	for _, p := range all {
		paths, registers, journals = append(paths, p.path), append(registers, p.register), append(journals, p.journal)
	}
	s.path, s.register, s.journal = strings.Join(paths, ","), strings.Join(registers, ","), strings.Join(journals, ",")
}

func (s *settings) places() ([]place, error) {
	paths, registers, journals := strings.Split(s.path, ","), strings.Split(s.register, ","), strings.Split(s.journal, ",")
	if len(registers) != len(paths) || len(journals) != len(paths) {
		return nil, fmt.Errorf("%d paths, %d registers, %d journals", len(paths), len(registers), len(journals))
	}
	all := make([]place, len(paths))
	for i := range all {
		all[i] = place{paths[i], registers[i], journals[i]}
	}
	return all, nil
}
