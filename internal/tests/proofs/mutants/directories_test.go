package mutants

// directories has the packages by the names that the tables use.
var directories = map[string]string{
	"clock":    "internal/clock",
	"core":     "internal/core",
	"wire":     "internal/wire",
	"session":  "session",
	"election": "election",
	"schedule": "schedule",
	"fence":    "fence",

	"queue":     "internal/queue2",
	"share":     "internal/share",
	"rwlock":    "internal/rwlock2",
	"semaphore": "internal/semaphore2",
	"zklock":    "internal/zklock2",

	"databases":  "internal/tests/databases", // a module of its own
	"simulation": "internal/tests/proofs/simulation",
}
