package policy

import (
	"maps"
)

// Merge makes one definition of a policy and an operator policy. What only one of them
// defines is taken as it is.
// Source: https://www.rabbitmq.com/docs/policies#operator-policies-conflicts.
func Merge(regular, operator Definition) Definition {
	if regular == nil && operator == nil {
		return nil
	}
	merged := maps.Clone(regular)
	if merged == nil {
		merged = Definition{}
	}
	for key, v := range operator {
		if old, both := merged[key]; both {
			if s, known := settingOf(key); known && s.operator != nil {
				v = s.operator(old, v)
			}
		}
		merged[key] = v
	}
	return merged
}

// Resolve decides between what policies say of a setting and what the queue or exchange
// was declared with. It returns one of the two.
func Resolve(t Type, key string, policy, argument any) any {
	if s, known := settingOf(key); known {
		return s.argument(t)(policy, argument)
	}
	return argument
}
