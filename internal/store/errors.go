package store

import "errors"

// What goes wrong, to be tested with errors.Is. The errors that Open returns name the data folder and say what to do.
var (
	// ErrInUse is returned by Open while another process, or another Store, has the data folder open. Nothing was touched.
	ErrInUse = errors.New("the data folder is in use")

	// ErrNewerFormat is returned by Open when a newer version wrote the data folder. Nothing was touched.
	ErrNewerFormat = errors.New("the data folder has a newer format")

	// ErrDamaged is returned by Open and by reads when what is on disk cannot be read as what it should be.
	ErrDamaged = errors.New("the data folder is damaged")

	// ErrUnavailable is told to waiters, and returned by reads and by Err, while the disk does not take writes (it is full, or broken).
	// It does not undo anything: the operations stay pending, and are written as soon as the disk takes writes again.
	ErrUnavailable = errors.New("the store cannot write")

	// ErrClosed is told to waiters and returned by reads after Close.
	ErrClosed = errors.New("the store is closed")
)
