package cli

import (
	"fmt"
	"os"
	"strings"
)

// readUsers reads a file of NAME:PASSWORD lines; empty lines and those that begin with # say nothing. Without a file it
// returns nil, the broker's default. A password may have colons. Errors do not repeat lines.
func readUsers(file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("users: %w", err)
	}
	users := map[string]string{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, password, ok := strings.Cut(line, ":")
		switch _, twice := users[name]; {
		case !ok || name == "":
			return nil, fmt.Errorf("users: line %d of %s is not NAME:PASSWORD", number, file)
		case twice:
			return nil, fmt.Errorf("users: line %d of %s names a user for the second time", number, file)
		}
		users[name] = password
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("users: %s names no user, so nobody could log in", file)
	}
	return users, nil
}
