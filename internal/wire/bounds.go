package wire

// The bounds of one connection. Figures are of ZooKeeper 3.8 on a machine with two processors, a millisecond away.
const (
	// mostCalls bounds the calls in flight. A burst of 1,000 locks, which are three calls each, went at 1,300 locks/s with
	// 16 calls, 2,400 with 32, 3,300 with 64, 3,500 with 128 and 4,100 with 256. The slowest read in a hundred of another
	// client took 7 ms beside it with 128 calls, and 12 ms with 256.
	mostCalls = 128
	// mostBytes bounds the bytes of the calls in flight, unless one call is longer. A heartbeat waits behind them: on a
	// network of 1 Mbit/s 0.13 s behind 16 kB, 0.54 s behind 64 kB, and 1.1 s behind 128 kB, which is as long as the time
	// between two rounds of heartbeats of a short session.
	mostBytes = 64 << 10
	// mostWrite bounds the bytes of calls that are written at once, unless one call is longer. All frames of a write count
	// as sent when it begins, and no heartbeat leaves while it lasts: on that network 0.13 s. The kernel takes no more before
	// it has sent that (TCP_NOTSENT_LOWAT in package dial).
	mostWrite = 16 << 10
	// mostShare is how many callers share a listing, which waits until their creates have left: those of 64 callers fill half
	// of a window. So 300 contenders of one directory cost 5 listings and not 300.
	mostShare = 64
	// longCall is the least length of a call that a server may refuse for its length: any sensible jute.maxbuffer is longer.
	longCall = 24 << 10
	// mostSteps bounds the steps of a SASL exchange. Mechanisms have three at most.
	mostSteps = 20
	// mostDeaf bounds the calls of a mechanism that run on after their time.
	mostDeaf = 8
	// emptyReads is after how many reads in a row without bytes and without an error a connection is given up. Not every
	// dialer's connections follow the rules.
	emptyReads = 100
	// readBuffer is how much is read at a time, and up to which length the memory of a frame serves the next one too.
	readBuffer = 4 << 10
	// visitFrame bounds the answers to a [Visit], which are short.
	visitFrame = 64 << 10
)
