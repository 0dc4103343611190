package config

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	durations "github.com/dormousemq/dormouse/internal/duration"
)

// duration is a time such as 500ms, 30s, 1h30m or 7d.
type duration time.Duration

// UnmarshalYAML reads a duration.
func (d *duration) UnmarshalYAML(node ast.Node) error {
	text, ok := node.(*ast.StringNode)
	if !ok {
		return &valueError{node.GetToken(), fmt.Sprintf("%s is not a time with its unit, such as 500ms, 30s, 1h30m or 7d", node)}
	}
	parsed, err := durations.Parse(text.Value)
	if err != nil {
		return &valueError{node.GetToken(), err.Error()}
	}
	*d = duration(parsed)
	return nil
}

// A valueError is a value that cannot be, with its place.
type valueError struct {
	token   *token.Token
	message string
}

func (e *valueError) Error() string { return e.message }
