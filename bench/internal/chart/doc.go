// Package chart draws the measurements of this module's programs as PNG files for the
// documentation.
package chart
