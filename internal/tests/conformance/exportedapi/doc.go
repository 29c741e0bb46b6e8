// Package exportedapi lists what the packages of this module export, one line a symbol, so that a
// change of the API shows in the diff of a commit. The lists are the files in testdata, one
// for each package. TestAPI compares them with the code, and "make api" writes them anew. Another
// test checks that go doc shows users no name of an internal package.
package exportedapi
