package wire

// The bounds of one connection. Figures are of ZooKeeper 3.8 on two processors, a millisecond away.
const (
	// mostCalls bounds the calls in flight. A burst of 1,000 locks went at 1,300 locks/s with 16 calls, 3,500 with
	// 128 and 4,100 with 256. The slowest read in a hundred of another client then took 7 ms with 128, and 12 ms with
	// 256.
	mostCalls = 128
	// mostBytes bounds the bytes of the calls in flight, unless one call is longer. A heartbeat waits behind them: at
	// 1 Mbit/s 0.54 s behind 64 kB, and 1.1 s behind 128 kB, too long for a short session.
	mostBytes = 64 << 10
	// mostWrite bounds the bytes of one write, unless one call is longer. Its frames count as sent when it begins,
	// and no heartbeat leaves meanwhile: 0.13 s at 1 Mbit/s.
	mostWrite = 16 << 10
	// mostShare is how many callers share a listing, which waits until their creates have left: those of 64 fill half
	// a window. So 300 contenders cost 5 listings.
	mostShare = 64
	// longCall is the least length that a server may refuse.
	longCall = 24 << 10
	// mostSteps bounds a SASL exchange. Mechanisms have three steps at most.
	mostSteps = 20
	// mostDeaf bounds the calls of a mechanism that hang.
	mostDeaf = 8
	// emptyReads is after how many empty reads without an error a connection is given up.
	emptyReads = 100
	readBuffer = 4 << 10
	visitFrame = 64 << 10
)
