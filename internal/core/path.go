package core

import "strings"

// outward adds the chroot to a path, and inward removes it.
func (s *Session) outward(path string) string { return s.cfg.outward(path) }

func (c *Config) outward(path string) string {
	if path == "/" && c.chroot != "" {
		return c.chroot
	}
	return c.chroot + path
}

func (s *Session) inward(path string) string {
	rest := strings.TrimPrefix(path, s.cfg.chroot)
	if rest == "" {
		return "/"
	}
	return rest
}
