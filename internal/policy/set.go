package policy

import (
	"cmp"
	"slices"

	"github.com/dormousemq/dormouse/internal/pattern"
)

// Set is the policies of a virtual host. The zero value has none. It is not safe for
// concurrent use.
type Set struct {
	all []member // by kind and name
}

type member struct {
	Policy
	pattern *pattern.Pattern
}

// Put adds a policy in the place of one of its kind and name, if there is one. The
// error is that of Validate.
func (s *Set) Put(p Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	pattern, err := compile(p.Pattern)
	if err != nil {
		return err
	}
	p.ApplyTo = cmp.Or(p.ApplyTo, applyToAll)
	p.Definition = plain(p.Definition).(map[string]any)
	i, found := s.find(p.Kind, p.Name)
	if !found {
		s.all = slices.Insert(s.all, i, member{})
	}
	s.all[i] = member{Policy: p, pattern: pattern}
	return nil
}

// Delete removes a policy and tells whether there was one.
func (s *Set) Delete(k Kind, name string) bool {
	i, found := s.find(k, name)
	if found {
		s.all = slices.Delete(s.all, i, i+1)
	}
	return found
}

func (s *Set) find(k Kind, name string) (int, bool) {
	return slices.BinarySearchFunc(s.all, Policy{Kind: k, Name: name}, func(m member, p Policy) int {
		return cmp.Or(cmp.Compare(m.Kind, p.Kind), cmp.Compare(m.Name, p.Name))
	})
}

// List returns the policies of a kind by name.
func (s *Set) List(k Kind) []Policy {
	var list []Policy
	for _, m := range s.all {
		if m.Kind == k {
			list = append(list, m.Policy)
		}
	}
	return list
}

// For returns what applies to t: of each kind the policy with the highest priority of
// those that are for it. Of several with the same, RabbitMQ leaves open which; here it
// is the first by name.
func (s *Set) For(t Target) Effective {
	regular, operator := s.match(Regular, t), s.match(Operator, t)
	return Effective{
		Policy: regular.Name, OperatorPolicy: operator.Name,
		Definition: Merge(regular.Definition, operator.Definition),
	}
}

// match returns the zero Policy if none is for t.
func (s *Set) match(k Kind, t Target) (best Policy) {
	for _, m := range s.all {
		if m.Kind != k || best.Name != "" && m.Priority <= best.Priority {
			continue
		}
		if applies(m.ApplyTo, t.Type) && m.Definition.suits(t.Type) && m.pattern.Match(t.Name) {
			best = m.Policy
		}
	}
	return best
}

// suits tells whether a queue of type t knows all that d defines; a policy with
// something else in it is passed over.
func (d Definition) suits(t Type) bool {
	for key := range d {
		if s, known := settingOf(key); known && slices.Contains(s.not, t) {
			return false
		}
	}
	return true
}
