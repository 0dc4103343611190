package policy

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/dormousemq/dormouse/internal/pattern"
)

// maxPattern is the longest pattern, in bytes, as in RabbitMQ since 4.3.
const maxPattern = 1024

// compile makes the expression of a pattern.
func compile(expression string) (*pattern.Pattern, error) {
	if text := patternProblem(expression); text != "" {
		return nil, &ValidationError{[]string{text}}
	}
	return pattern.Compile(expression)
}

// patternProblem says what is wrong with a pattern, "" if nothing is.
func patternProblem(expression string) string {
	if len(expression) > maxPattern {
		return fmt.Sprintf("pattern must not exceed %d bytes", maxPattern)
	}
	if _, err := pattern.Compile(expression); err == nil {
		return ""
	}
	_, err := regexp.Compile(expression) // which says more precisely what is wrong
	e, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return invalid(err.Error(), len(expression))
	}
	if what := onlyPCRE(e); what != "" {
		return fmt.Sprintf("pattern has %s (%s), which RabbitMQ takes and this broker does not: "+
			"write it without, or say which names are meant by several policies of different priorities", what, e.Expr)
	}
	switch e.Code {
	case syntax.ErrMissingBracket:
		return invalid("missing terminating ] for character class", len(expression))
	case syntax.ErrMissingParen:
		return invalid("missing closing parenthesis", len(expression))
	case syntax.ErrUnexpectedParen:
		return invalid("unmatched closing parenthesis", strings.LastIndex(expression, ")"))
	case syntax.ErrMissingRepeatArgument:
		return invalid("quantifier does not follow a repeatable item", max(0, strings.Index(expression, e.Expr)))
	case syntax.ErrTrailingBackslash:
		return invalid("\\ at end of pattern", len(expression))
	}
	return invalid(e.Code.String(), max(0, strings.Index(expression, e.Expr)))
}

// onlyPCRE says what in a pattern PCRE knows and this broker does not, "" if it is wrong for both.
func onlyPCRE(e *syntax.Error) string {
	switch {
	case e.Code == syntax.ErrInvalidEscape && strings.ContainsAny(e.Expr[1:], "HhVRXNKo"):
		return "an escape"
	case e.Code == syntax.ErrInvalidRepeatOp && strings.HasSuffix(e.Expr, "+"):
		return "possessive repetition"
	}
	return ""
}

// invalid words the complaint as Erlang prints it, which breaks the line at column 80.
func invalid(what string, at int) string {
	const before = "pattern should be regular expression but is invalid: "
	quoted := strconv.Quote(what)
	if tuple := fmt.Sprintf("{%s,%d}", quoted, at); len(before)+len(tuple) <= 80 {
		return before + tuple
	}
	return fmt.Sprintf("%s{%s,\n%s%d}", before, quoted, strings.Repeat(" ", len(before)+1), at)
}
