package cli

import (
	"fmt"
	"os"
)

// readDefinitions reads the file of --definitions; nil without one.
func readDefinitions(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("definitions: %w", err)
	}
	return text, nil
}
