package policy

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// maxPattern is the longest pattern, in bytes, as in RabbitMQ since 4.3.
const maxPattern = 1024

// compile makes the expression of a pattern. RabbitMQ's are PCRE; these are Go's, which
// have no look-around, no back-references and no possessive or atomic groups, and in
// turn cannot take exponential time.
func compile(pattern string) (*regexp.Regexp, error) {
	if text := patternProblem(pattern); text != "" {
		return nil, &ValidationError{[]string{text}}
	}
	return regexp.Compile(pattern)
}

// patternProblem says what is wrong with a pattern, "" if nothing is.
func patternProblem(pattern string) string {
	if len(pattern) > maxPattern {
		return fmt.Sprintf("pattern must not exceed %d bytes", maxPattern)
	}
	_, err := regexp.Compile(pattern)
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return invalid(err.Error(), len(pattern))
	}
	if what := onlyPCRE(e); what != "" {
		return fmt.Sprintf("pattern has %s (%s), which RabbitMQ takes and this broker does not: "+
			"its patterns are Go's regular expressions, without look-around, back-references and possessive repetition. "+
			"Write it without, or say which names are meant by several policies of different priorities", what, e.Expr)
	}
	switch e.Code {
	case syntax.ErrMissingBracket:
		return invalid("missing terminating ] for character class", len(pattern))
	case syntax.ErrMissingParen:
		return invalid("missing closing parenthesis", len(pattern))
	case syntax.ErrUnexpectedParen:
		return invalid("unmatched closing parenthesis", strings.LastIndex(pattern, ")"))
	case syntax.ErrMissingRepeatArgument:
		return invalid("quantifier does not follow a repeatable item", max(0, strings.Index(pattern, e.Expr)))
	case syntax.ErrTrailingBackslash:
		return invalid("\\ at end of pattern", len(pattern))
	}
	return invalid(e.Code.String(), max(0, strings.Index(pattern, e.Expr)))
}

// onlyPCRE says what in a pattern PCRE knows and Go does not, "" if it is wrong for both.
func onlyPCRE(e *syntax.Error) string {
	switch e.Code {
	case syntax.ErrInvalidNamedCapture:
		if strings.HasPrefix(e.Expr, "(?<=") || strings.HasPrefix(e.Expr, "(?<!") {
			return "look-around"
		}
	case syntax.ErrInvalidPerlOp:
		switch {
		case strings.HasPrefix(e.Expr, "(?=") || strings.HasPrefix(e.Expr, "(?!"):
			return "look-around"
		case strings.HasPrefix(e.Expr, "(?>"):
			return "an atomic group"
		case strings.HasPrefix(e.Expr, "(?#"):
			return "a comment"
		}
		return "a group of a kind"
	case syntax.ErrInvalidEscape:
		if strings.ContainsAny(e.Expr[1:], "123456789kg") {
			return "a back-reference"
		}
		if strings.ContainsAny(e.Expr[1:], "ZGhHRVXNKeco") {
			return "an escape"
		}
	case syntax.ErrInvalidRepeatOp:
		if strings.HasSuffix(e.Expr, "+") {
			return "possessive repetition"
		}
	case syntax.ErrInvalidRepeatSize:
		return "a repetition of more than a thousand"
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
