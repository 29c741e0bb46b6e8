// Package mutants breaks the code on purpose, in one place at a time, and sees that a named test notices. A mutant that
// no test notices is a promise that nothing guards.
//
//	make mutants
//	make mutants MUTANT='the clock is not asked before a grant'
//
// A mutant is an operation on the syntax tree of a named function. It finds its place by meaning: a condition that calls
// s.Err, the case session.WatchDeleted, the statement that calls Break. The place must be there exactly once. So the code
// around it can be written anew without a change here, and a mutant whose place is gone says so in "go test ./...".
//
// The changed file is printed without its comments, and takes the place of the original by "go test -overlay".
//
// To add a mutant, say in its name what is broken, add it to one of the tables (table*_test.go), and run it. If nothing
// notices it, write the test first.
package mutants
