package hold

import "context"

// Enter is Lock, and returns the hold.
func (h *Holds[L]) Enter(ctx context.Context) (*Hold[L], error) { return h.lock(ctx, viaLock) }
