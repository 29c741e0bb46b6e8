package queue

import "github.com/turnstile-go/turnstile/session"

// Manager returns the session manager that was given to [New].
func (q *Queue) Manager() *session.Manager { return q.made().m }
