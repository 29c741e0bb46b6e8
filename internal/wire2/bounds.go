package wire

// The bounds of one connection. They are fixed, so that what a session can cost its servers and itself can be read here.
const (
	// mostCalls and mostBytes bound the calls in flight, and the bytes of their frames. A heartbeat waits behind all of
	// them: in the kernel, on the network and in the server. One call may always leave, whatever its length.
	mostCalls = 128
	mostBytes = 64 << 10
	// mostWrite bounds the bytes of calls that are written at once, unless one call is longer. All frames of a write count
	// as sent when it begins, and no heartbeat leaves while it lasts. So on a slow network long writes would cost the
	// session its lease.
	mostWrite = 16 << 10
	// mostShare is how many callers share a listing. Their creates leave before it, so it bounds how long a listing waits.
	mostShare = 64
	// mostSteps bounds the steps of a SASL exchange. Mechanisms have three at most.
	mostSteps = 20
	// mostDeaf bounds the calls of a mechanism that run on after their time.
	mostDeaf = 8
	// emptyReads is after how many reads in a row without bytes and without an error a connection is given up, as in
	// package bufio. Not every dialer's connections follow the rules.
	emptyReads = 100
	// readBuffer is how much is read at a time, and up to which length the memory of a frame serves the next one too.
	readBuffer = 4 << 10
	// visitFrame bounds the answers to a [Visit], which are short.
	visitFrame = 64 << 10
)
