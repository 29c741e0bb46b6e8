// Package chart draws what the programs of this module have measured, as PNG files for the
// documentation.
package chart
