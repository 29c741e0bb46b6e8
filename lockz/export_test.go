package lockz

// The JSON of the page, for the tests of the package.
type (
	Page    = pageJSON
	Manager = managerJSON
	Behind  = behindJSON
)
