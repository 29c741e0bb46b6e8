package semaphore

import "github.com/turnstile-go/turnstile/session"

// Manager returns the session manager that was given to [New].
func (s *Semaphore) Manager() *session.Manager { return s.made().top.Manager() }
