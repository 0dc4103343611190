package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ValidationError says what is wrong with a policy.
type ValidationError struct {
	// Problems are RabbitMQ's texts, at least one.
	Problems []string
}

// Error is the text that RabbitMQ's HTTP API gives as the reason.
func (e *ValidationError) Error() string {
	return "Validation failed\n\n" + strings.Join(e.Problems, "\n") + "\n"
}

// Parse makes a policy of what a client of RabbitMQ's HTTP API or a definitions file
// says of it: pattern, definition, and if they are there priority and apply-to, as
// encoding/json decodes them, with or without UseNumber. Of a json.Number it is known
// whether it is an integer; a float64 never is one. The error is a *ValidationError.
func Parse(k Kind, name string, body map[string]any) (Policy, error) {
	body = plain(body).(map[string]any)
	p := Policy{Kind: k, Name: name, ApplyTo: applyToAll}
	var problems []string
	complain := func(text string) {
		if text != "" {
			problems = append(problems, text)
		}
	}
	definition, has := body["definition"]
	switch d := definition.(type) {
	case map[string]any:
		p.Definition = d
		complain(p.Definition.problem(k))
	default:
		complain(missingOr("definition", name, has, "definition must be a dictionary: "+term(d)))
	}
	if applyTo, has := body["apply-to"]; has {
		p.ApplyTo, _ = applyTo.(string)
		complain(applyToProblem(p.ApplyTo))
	}
	pattern, has := body["pattern"]
	if text, ok := pattern.(string); ok {
		p.Pattern = text
		complain(patternProblem(text))
	} else {
		complain(missingOr("pattern", name, has, "pattern should be a binary but was "+term(pattern)))
	}
	if priority, has := body["priority"]; has {
		n, ok := Integer(priority)
		p.Priority = int(n)
		if !ok {
			complain("priority should be a number, actually was " + term(priority))
		}
	}
	if problems != nil {
		return Policy{}, &ValidationError{problems}
	}
	return p, nil
}

func missingOr(key, name string, has bool, wrong string) string {
	if has {
		return wrong
	}
	return "Key \"" + key + "\" not found in " + name
}

// Validate says what is wrong with p: the error, if any, is a *ValidationError.
func (p Policy) Validate() error {
	body := map[string]any{"pattern": p.Pattern, "definition": map[string]any(p.Definition), "priority": p.Priority}
	if p.ApplyTo != "" {
		body["apply-to"] = p.ApplyTo
	}
	_, err := Parse(p.Kind, p.Name, body)
	return err
}

func applyToProblem(word string) string {
	_, isQueueType := queueTypes[word]
	if isQueueType || word == applyToAll || word == applyToExchanges || word == applyToQueues {
		return ""
	}
	return fmt.Sprintf("apply-to '%s' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'", word)
}

// problem returns what is wrong with the first wrong setting, "" if none is. A wrong
// value comes before a key that nobody knows.
func (d Definition) problem(k Kind) string {
	if len(d) == 0 {
		return "no policy provided"
	}
	unknown := slices.Sorted(maps.Keys(d))
	for _, late := range []bool{false, true} {
		for _, s := range settings {
			v, has := d[s.key]
			if !has || s.late != late || k == Operator && s.operator == nil {
				continue
			}
			if !s.valid(v) {
				return term(v) + " is not a valid " + s.complaint
			}
			unknown = slices.DeleteFunc(unknown, func(key string) bool { return key == s.key })
		}
	}
	if text := d.retryProblem(); text != "" {
		return text
	}
	if len(unknown) > 0 {
		return pairs(d, unknown) + " are not recognised policy settings"
	}
	return ""
}

// retryProblem checks the settings of a delayed retry against each other.
func (d Definition) retryProblem() string {
	kind, has := d[retryKey+"type"]
	low, hasLow := Integer(d[retryKey+"min"])
	high, hasHigh := Integer(d[retryKey+"max"])
	switch {
	case has && kind != "disabled" && !hasLow:
		return fmt.Sprintf("delayed-retry-min is required when delayed-retry-type is %s", kind)
	case hasLow && hasHigh && high < low:
		return fmt.Sprintf("delayed-retry-max (%d) must not be smaller than delayed-retry-min (%d)", high, low)
	}
	return ""
}
