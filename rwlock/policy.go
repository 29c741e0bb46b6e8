package rwlock

import "github.com/turnstile-go/turnstile/queue"

// The two kinds see the same contenders: Curator's, whose names this package uses, and kazoo's. They
// differ in the first prefix, which is that of their own nodes.
var (
	writing = queue.Writer()
	reading = queue.Reader()
)
