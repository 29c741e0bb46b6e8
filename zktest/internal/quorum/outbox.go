package quorum

import "sync"

// An outbox holds the frames that a client has not read yet. It has no limit, because the run
// loop must not wait for a client. One goroutine puts frames in, and one takes them out.
type outbox struct {
	mu      sync.Mutex
	frames  [][]byte
	arrived chan struct{} // has a token when there may be a frame
}

func newOutbox() *outbox { return &outbox{arrived: make(chan struct{}, 1)} }

// put adds a frame. A nil frame stands for the end of the connection.
func (o *outbox) put(frame []byte) {
	o.mu.Lock()
	o.frames = append(o.frames, frame)
	o.mu.Unlock()
	select {
	case o.arrived <- struct{}{}:
	default:
	}
}

// pop waits for a frame and takes the oldest one. It returns false if done is closed first.
func (o *outbox) pop(done <-chan struct{}) ([]byte, bool) {
	for {
		if frame, ok := o.tryPop(); ok {
			return frame, true
		}
		select {
		case <-o.arrived:
		case <-done:
			return nil, false
		}
	}
}

func (o *outbox) tryPop() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.frames) == 0 {
		return nil, false
	}
	frame := o.frames[0]
	o.frames[0] = nil // so that it can be freed
	o.frames = o.frames[1:]
	return frame, true
}
