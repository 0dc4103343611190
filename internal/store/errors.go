package store

import "errors"

// The errors of the store, to be tested with errors.Is.
var (
	// ErrInUse: another process (or another Store) has the data folder open.
	ErrInUse = errors.New("data folder is in use")
	// ErrNewerFormat: the data folder was written by a newer version.
	ErrNewerFormat = errors.New("data folder has a newer format")
	// ErrDamaged: something in the data folder cannot be read as what it should be.
	ErrDamaged = errors.New("data folder is damaged")
	// ErrClosed: the store is closed.
	ErrClosed = errors.New("store is closed")
	// ErrUnavailable: the disk does not take writes at the moment. What was committed stays pending and is written when it does again.
	ErrUnavailable = errors.New("store cannot write")
)
