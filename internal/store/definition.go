package store

import "strings"

// DefinitionKey is the key of a definition: its kind and the names of what it defines, which may contain anything. No
// two lists of names have the same key, and the key of some names followed by "" is the prefix of all longer ones.
// Zero bytes stand between the parts; one in a name is written as 1 1, and a one as 1 2.
func DefinitionKey(kind string, names ...string) string {
	for _, name := range names {
		kind += "\x00" + escaped(name)
	}
	return kind
}

func escaped(name string) string {
	if !strings.ContainsAny(name, "\x00\x01") {
		return name
	}
	return strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02").Replace(name)
}
