// Package size tests what only size breaks: thousands of goroutines on one lock and on as many locks, networks on
// which a burst takes longer than a session timeout, directories of 17 MB, servers that many requests would
// overload, and a process that has no file descriptor or no memory left. Sockets are real, and servers too: real ones have a heap of 256 MB.
//
// A test fails if a session is lost, or if a call gets no answer. It asserts no duration. Figures such as the least time that
// a session had left are logged. "make proof PROOF=size" runs all tests in full; a plain "go test" leaves out what
// takes long, and runs the bursts with a tenth of the goroutines.
package size
