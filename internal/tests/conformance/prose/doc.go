// Package prose checks the English of comments and Markdown pages for phrases that are hard
// to read: subjects without a name ("whoever waits") and sentences that begin with a relative
// clause in place of a subject ("Who waits watches its predecessor."). TestProse names the
// file, the line and the phrase. CONTRIBUTING.md says what to write instead.
// TestArchitecture compares the names in ARCHITECTURE.md with the code. TestLinks follows the links of the
// pages, and TestRecipes looks for the code of docs/recipes.md in the files that tests run.
package prose
