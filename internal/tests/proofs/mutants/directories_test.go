package mutants

// directories has the packages by the names that the tables use.
var directories = map[string]string{
	"clock":    "internal/clock",
	"wire":     "internal/wire",
	"session":  "session",
	"election": "election",
	"schedule": "schedule",
	"fence":    "fence",

	"queue":     "queue",
	"share":     "internal/share",
	"rwlock":    "rwlock",
	"semaphore": "semaphore",
	"zklock":    "zklock",

	"databases":  "internal/tests/databases", // a module of its own
	"simulation": "internal/tests/proofs/simulation",
	"hostile":    "internal/tests/proofs/hostileservers",
}
