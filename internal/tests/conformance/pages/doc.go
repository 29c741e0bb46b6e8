// Package pages follows the links of the Markdown pages, looks for the code of docs/recipes.md and for the tests that
// pages name, and compares the names in ARCHITECTURE.md with the code.
package pages
