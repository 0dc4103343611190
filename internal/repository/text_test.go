package repository

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// unwanted is what must not be in any file: it means nothing to who has only this repository.
var unwanted = []struct {
	pattern *regexp.Regexp
	because string
}{
	{
		regexp.MustCompile(`(^|[\s"'=(` + "`" + `])/(work|root|home)/`),
		"an absolute path of somebody's machine",
	},
	{
		regexp.MustCompile(`(?i)\b(issues?|pull request|pr) #[0-9]+`),
		"a number in a tracker: say what it is about",
	},
	{
		regexp.MustCompile(`(?i)\b(proxy\.golang|deb\.debian|snapshot\.debian|registry\.npmjs)\.org\b`),
		"the host of a package registry: machines choose their own mirrors",
	},
}

func TestNothingPointsOutside(t *testing.T) {
	files(t, func(name string, content []byte) {
		if strings.HasPrefix(name, "internal/repository/") {
			return
		}
		number := 0
		for line := range strings.Lines(string(content)) {
			number++
			for _, u := range unwanted {
				if found := u.pattern.FindString(line); found != "" {
					t.Errorf("%s:%d: %q: %s", name, number, strings.TrimSpace(found), u.because)
				}
			}
		}
	})
}

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```[^\n]*$")
	code     = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|(?m:^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)>?)|(?:src|href)="([^"]+)"`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?)[ #]*$`)
	anchored = regexp.MustCompile(`(?:id|name)="([^"]+)"`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	documents := map[string]string{}
	files(t, func(name string, content []byte) {
		if strings.HasSuffix(name, ".md") {
			documents[name] = fence.ReplaceAllString(string(content), "")
		}
	})
	if len(documents) == 0 {
		t.Fatal("no documents found")
	}
	for name, text := range documents {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			target := match[1] + match[2] + match[3]
			u, err := url.Parse(target)
			if err != nil {
				t.Errorf("%s: link %q: %v", name, target, err)
				continue
			}
			if u.Scheme != "" || u.Host != "" {
				continue
			}
			to := name
			if u.Path != "" {
				to = path.Join(path.Dir(name), u.Path)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil || strings.HasPrefix(to, "../") {
				t.Errorf("%s: link %q leads nowhere", name, target)
				continue
			}
			if text, ok := documents[to]; ok && u.Fragment != "" && !anchors(text)[u.Fragment] {
				t.Errorf("%s: link %q: %s has no such heading", name, target, to)
			}
		}
	}
}

// anchors are the fragments by which a document's headings can be reached.
func anchors(document string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(document, -1) {
		found[slug(match[1])] = true
	}
	for _, match := range anchored.FindAllStringSubmatch(document, -1) {
		found[match[1]] = true
	}
	return found
}

// slug is a heading as GitHub writes it in a fragment: small letters, digits, - and _; spaces become -.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}

func TestSlug(t *testing.T) {
	for heading, want := range map[string]string{
		"Delays":                        "delays",
		"What `dormouse serve` does":    "what-dormouse-serve-does",
		"3.10, 4.0 & 4.3":               "310-40--43",
		"x-death: who killed a message": "x-death-who-killed-a-message",
	} {
		if got := slug(heading); got != want {
			t.Errorf("slug(%q) = %q, want %q", heading, got, want)
		}
	}
}
