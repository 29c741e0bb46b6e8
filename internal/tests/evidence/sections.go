package main

import "slices"

// section is a generated table in docs or in README.md.
type section struct {
	name  string   // it stands between <!-- name --> and <!-- /name -->
	page  string   // below the module's directory
	renew string   // the command that makes it anew
	code  []string // the directories of the code that the table speaks of
}

// The directories that the tables speak of. Each list has what the packages in it need.
var (
	sessions = []string{"session", "internal/dial", "internal/wire", "internal/clock", "internal/codec", "internal/digestmd5",
		"internal/misuse", "internal/rounds"}
	queues = slices.Concat(sessions, []string{"queue", "internal/nodedata"})
	locks  = slices.Concat(queues, []string{"internal/share", "zklock", "rwlock", "semaphore"})
)

// sections has all sections of the pages.
var sections = []section{
	{"speed", "README.md", "make bench", locks},
	{"rivals", "docs/measured/rivals.md", "make bench", locks},
	{"scaling", "docs/measured/cost.md", "make scaling", locks},
	{"starvation", "docs/measured/starvation.md", "make starvation", locks},
	{"counterexamples", "docs/clock.md", "make models WRITE=1", []string{"internal/clock"}},
	{"others", "docs/clock.md", "make models WRITE=1", []string{"internal/clock"}},
	{"outages", "docs/measured/outages.md", "make outages WRITE=1", sessions},
	{"intervals", "docs/measured/outages.md", "make outages WRITE=1", sessions},
	{"timeouts", "docs/performance.md", "make outages WRITE=1", sessions},
	{"faults", "docs/measured/faults.md", "make faults", locks},
	{"recovery", "docs/measured/faults.md", "make recoveries WRITE=1", locks},
	{"nemesis", "docs/measured/nemesis.md", "make nemesis NEMESIS=10m RIVAL=all WRITE=1", locks},
	{"attacks", "docs/measured/long.md", "make nemesis NEMESIS=30m TICK=2s ADD=1", locks},
	{"seeds", "docs/measured/long.md", "make sim SEEDS=10000 FIRST=1 ADD=1", locks},
	{"ensembles", "docs/measured/ensembles.md", "make ensembles WRITE=1", slices.Concat(queues, []string{"zklock"})},
	{"soak", "docs/measured/soak.md", "make soak SOAK=1h WRITE=1", locks},
	{"fleet", "docs/measured/load.md", "make load WRITE=1", sessions},
	{"load", "docs/measured/load.md", "make load WRITE=1", slices.Concat(queues, []string{"zklock"})},
}
