package squad

import "time"

// Lease is the right to do alone what must be single: a branch, a merge, a
// sandbox. Fence grows each time the lease changes hands, so that work begun
// under an older one can be refused.
type Lease struct {
	Name      string    `json:"name"`
	Owner     string    `json:"owner"`
	Fence     int64     `json:"fence"`
	ExpiresAt time.Time `json:"expires_at"`
}
