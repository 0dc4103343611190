package repository

import (
	"slices"
	"strings"
	"testing"
)

// direction says what packages may import of this module and of others. What a package is not listed for, it may
// not import, and a package that is not listed here has no rule.
var direction = []struct {
	packages string // paths inside the module
	ours     string // of this module
	others   string // modules of others; "any" for no rule
	because  string
}{
	{
		packages: "internal/duration internal/retry internal/xdeath internal/wire internal/clock internal/compact",
		because:  "pure packages need only the standard library, so that they can be read, tested and fuzzed alone",
	},
	{
		packages: "internal/route",
		ours:     "internal/compact",
		because:  "routing is data structures",
	},
	{
		packages: "internal/policy",
		ours:     "internal/pattern",
		because:  "which policy applies is decided by names alone",
	},
	{
		packages: "internal/ladder",
		ours:     "internal/duration",
		because:  "the ladder is arithmetic",
	},
	{
		packages: "config",
		ours:     module + " internal/duration",
		others:   "github.com/goccy/go-yaml",
		because:  "a file says what the library can be told, and nothing else",
	},
	{
		packages: "internal/store",
		others:   "github.com/cockroachdb/pebble/v2",
		because:  "the store keeps opaque records: what they mean is not its business",
	},
	{
		packages: "internal/message",
		ours:     "internal/wire internal/xdeath",
		because:  "a message knows its content and its history, not where it waits",
	},
	{
		packages: "internal/pattern",
		others:   "github.com/dlclark/regexp2",
		because:  "a regular expression knows nothing of what it is asked about",
	},
	{
		packages: "internal/access",
		ours:     "internal/pattern internal/store internal/wire",
		because:  "who may do what is decided by names alone",
	},
	{
		packages: "internal/queue",
		ours:     "internal/clock internal/message internal/store internal/wire internal/xdeath",
		because:  "a queue knows nothing of exchanges and connections: it is handed a way to publish dead letters",
	},
	{
		packages: "internal/delayed",
		ours:     "internal/clock internal/message internal/queue internal/store",
		because:  "what waits for its time knows nothing of exchanges: it is handed a way to release it",
	},
	{
		packages: "internal/stream",
		ours:     "internal/clock internal/message internal/queue internal/store internal/wire",
		because:  "a stream knows nothing of exchanges and connections",
	},
	{
		packages: "internal/vhost",
		ours:     "internal/clock internal/compact internal/delayed internal/message internal/policy internal/queue internal/route internal/store internal/stream internal/wire internal/xdeath",
		because:  "a virtual host knows nothing of connections",
	},
	{
		packages: "internal/session",
		ours:     "internal/access internal/clock internal/message internal/queue internal/store internal/vhost internal/wire internal/xdeath",
		because:  "a connection knows its virtual host, and not the broker that listens for it",
	},
	{
		packages: "internal/check",
		ours:     "internal/message internal/queue internal/store internal/wire",
		because:  "a folder is checked without a broker",
	},
	{
		packages: "internal/definitions",
		ours:     "internal/access internal/policy internal/vhost internal/wire",
		because:  "definitions are read into what there is, whoever has sent them",
	},
	{
		packages: "internal/management",
		ours:     "internal/access internal/definitions internal/message internal/policy internal/queue internal/session internal/store internal/vhost internal/wire",
		others:   "golang.org/x/sys",
		because:  "the management API looks at the broker's parts, and they know nothing of it",
	},
	{
		packages: "broker",
		ours:     "internal/access internal/clock internal/definitions internal/disk internal/management internal/memory internal/session internal/store internal/vhost",
		because:  "the broker only puts its parts together",
	},
	{
		packages: ".",
		ours:     "internal/duration internal/ladder internal/retry internal/xdeath",
		others:   "github.com/rabbitmq/amqp091-go",
		because:  "who uses the client must not link a broker or a database",
	},
	{
		packages: "internal/bench",
		ours:     module + " internal/ladder internal/wire",
		others:   "github.com/rabbitmq/amqp091-go github.com/HdrHistogram/hdrhistogram-go",
		because:  "a measurement knows a broker by AMQP only, so that all brokers are measured alike",
	},
	{
		packages: "internal/interop/suites",
		others:   "github.com/rabbitmq/amqp091-go github.com/spf13/cobra",
		because:  "it compares brokers from outside, as a client of each",
	},
	{
		packages: "cmd/dormouse",
		ours:     "internal/cli",
		because:  "main turns signals and errors into exit codes and does nothing else, so that everything can be tested",
	},
}

func TestImportDirection(t *testing.T) {
	all := packages(t)
	for _, rule := range direction {
		for path := range strings.FieldsSeq(rule.packages) {
			at := slices.IndexFunc(all, func(p listed) bool { return p.rel() == path })
			if at < 0 {
				t.Errorf("there is a rule for package %s, but no such package", path)
				continue
			}
			for _, imported := range all[at].Imports {
				if ours, ok := strings.CutPrefix(imported, module+"/"); ok || imported == module {
					if !slices.Contains(strings.Fields(rule.ours), ours) {
						t.Errorf("%s imports %s: %s", path, imported, rule.because)
					}
				} else if other(imported) && !allowed(imported, rule.others) {
					t.Errorf("%s imports %s: %s", path, imported, rule.because)
				}
			}
		}
	}
}

// other reports whether a path is neither of the standard library nor of this module.
func other(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}

func allowed(path, modules string) bool {
	for m := range strings.FieldsSeq(modules) {
		if path == m || strings.HasPrefix(path, m+"/") {
			return true
		}
	}
	return false
}

// exclusive lists what only some packages may import.
var exclusive = []struct {
	imported string
	by       string // paths inside the module
	because  string
}{
	{
		imported: "github.com/cockroachdb/pebble/v2",
		by:       "internal/store",
		because:  "nothing above the store knows the database, so that it can be exchanged",
	},
	{
		imported: "testing",
		by:       "dormousetest internal/rabbittest internal/conformance internal/interop",
		because:  "programs do not carry test code",
	},
}

func TestExclusiveImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, rule := range exclusive {
			if slices.Contains(strings.Fields(rule.by), p.rel()) {
				continue
			}
			for _, imported := range p.Imports {
				if allowed(imported, rule.imported) {
					t.Errorf("%s imports %s, which only %s may: %s", p.rel(), imported, rule.by, rule.because)
				}
			}
		}
	}
}

// brokerSide is what the broker consists of. It speaks AMQP through internal/wire, the clients through amqp091-go:
// two independent implementations meet in every test, and neither can hide the other's mistakes.
const brokerSide = "broker internal/access internal/management internal/session internal/vhost internal/delayed internal/queue internal/stream internal/message internal/store internal/wire"

func TestClientAndBrokerAreApart(t *testing.T) {
	for _, p := range packages(t) {
		isBroker := slices.Contains(strings.Fields(brokerSide), p.rel())
		for _, dep := range p.Deps {
			ours := strings.TrimPrefix(dep, module+"/")
			switch {
			case p.rel() == "." && slices.Contains(strings.Fields(brokerSide), ours):
				t.Errorf("the client library links %s: who uses it must not link a broker", ours)
			case isBroker && (dep == module || strings.HasPrefix(dep, "github.com/rabbitmq/amqp091-go")):
				t.Errorf("%s links %s: the broker has a codec of its own", p.rel(), dep)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("package %s has no package comment", p.rel())
		}
	}
}
