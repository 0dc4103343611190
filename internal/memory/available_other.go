//go:build !linux && !darwin

package memory

// Available is not known on this system.
func Available() (uint64, bool) { return 0, false }
