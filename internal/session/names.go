package session

// names makes strings of names without allocating those that were seen before.
type names map[string]string

// maxNames bounds how many names are remembered.
const maxNames = 1024

func (n *names) of(b []byte) string {
	if s, known := (*n)[string(b)]; known {
		return s
	}
	if *n == nil || len(*n) >= maxNames {
		*n = names{}
	}
	s := string(b)
	(*n)[s] = s
	return s
}
