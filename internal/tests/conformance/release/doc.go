// Package release tests the script that make release runs, in small repositories of its own.
package release
