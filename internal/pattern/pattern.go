// Package pattern is the regular expressions of permissions and policies, which in RabbitMQ are Perl's. They are used
// once a name, not once a message.
package pattern

import (
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
)

// patience is how long an expression with look-around or back-references may take to match one name. RabbitMQ bounds
// the same by a number of steps, and does as if the name did not match.
const patience = 100 * time.Millisecond

// Pattern is a regular expression. Its methods are safe for concurrent use.
type Pattern struct {
	always bool
	plain  *regexp.Regexp
	perl   *regexp2.Regexp // for what Go's own expressions do not know
}

// Compile reads an expression; the error says what is wrong with it. Go's own engine takes all it can, since it needs
// time in proportion to the name only.
func Compile(expression string) (*Pattern, error) {
	if expression == ".*" || expression == "^.*" {
		return &Pattern{always: true}, nil
	}
	if plain, err := regexp.Compile(expression); err == nil {
		return &Pattern{plain: plain}, nil
	}
	perl, err := regexp2.Compile(expression, regexp2.None)
	if err != nil {
		return nil, err
	}
	perl.MatchTimeout = patience
	return &Pattern{perl: perl}, nil
}

// Match tells whether the expression matches a part of name.
func (p *Pattern) Match(name string) bool {
	switch {
	case p.always:
		return true
	case p.plain != nil:
		return p.plain.MatchString(name)
	}
	matches, err := p.perl.MatchString(name)
	return matches && err == nil
}
