package dapr

// This is package lock of github.com/dapr/components-contrib, less what only the HTTP API needs. It is a copy because its
// module needs a later Go than this one, and some hundred other modules. In a component, take these from there.

// Metadata is lock.Metadata.
type Metadata struct{ Properties map[string]string }

// TryLockRequest is lock.TryLockRequest.
type TryLockRequest struct {
	ResourceID      string
	LockOwner       string
	ExpiryInSeconds int32
	Metadata        map[string]string
}

// TryLockResponse is lock.TryLockResponse.
type TryLockResponse struct {
	Success  bool
	Metadata map[string]string
}

// UnlockRequest is lock.UnlockRequest.
type UnlockRequest struct {
	ResourceID string
	LockOwner  string
	Metadata   map[string]string
}

// UnlockResponse is lock.UnlockResponse.
type UnlockResponse struct {
	Status   Status
	Metadata map[string]string
}

// Status is lock.Status.
type Status int32

// The statuses.
const (
	Success             Status = 0
	LockDoesNotExist    Status = 1
	LockBelongsToOthers Status = 2
	InternalError       Status = 3
)
