package mutants

import "flag"

var (
	mutantFlag = flag.String("mutant", "", "try only mutants whose name contains this")
	everyFlag  = flag.Int("every", 1, "try one in so many mutants")
	saltFlag   = flag.String("salt", "", "decides which mutants -every tries")
)
