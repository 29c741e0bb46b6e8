// Package pages follows the links of the Markdown pages, looks for the code of docs/recipes.md and for the tests that
// pages name, compares the names in ARCHITECTURE.md with the code, and looks for the examples of doc comments in tests.
package pages
