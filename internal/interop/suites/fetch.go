package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// installed says which Debian packages have to be installed first.
func installed(ctx context.Context, packages []string) error {
	var lacking []string
	for _, p := range packages {
		if exec.CommandContext(ctx, "dpkg-query", "--show", p).Run() != nil {
			lacking = append(lacking, p)
		}
	}
	if len(lacking) > 0 {
		return fmt.Errorf("needs packages: apt-get install --no-install-recommends %s", strings.Join(lacking, " "))
	}
	return nil
}

// do runs a command in a folder; its error has what the command printed last.
func do(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, last(out))
	}
	return nil
}

// last is the end of what a program printed, for an error.
func last(out []byte) []byte { return out[max(0, len(out)-2000):] }

// output runs a program of a suite for at most the given time and gives what it printed. Tests that fail end such
// programs with a failure too, so the exit code is told apart from a program that could not be run.
func output(ctx context.Context, limit time.Duration, dir string, env []string, args ...string) (out []byte, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	out, err = cmd.Output()
	switch _, exited := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		return out, true, nil
	case exited, errors.Is(err, exec.ErrWaitDelay), ctx.Err() != nil:
		return out, false, nil
	}
	return out, false, err
}

// debianSource unpacks the sources of a Debian package of the release that runs here into dir/src.
func debianSource(ctx context.Context, dir, name string) error {
	apt := filepath.Join(dir, "apt")
	if err := os.MkdirAll(filepath.Join(apt, "lists", "partial"), 0o755); err != nil {
		return err
	}
	sources, err := sourceList()
	if err != nil {
		return err
	}
	list := filepath.Join(apt, "sources.list")
	if err := os.WriteFile(list, sources, 0o644); err != nil {
		return err
	}
	options := []string{
		"-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::State::lists=" + filepath.Join(apt, "lists"),
	}
	aptGet := func(args ...string) error {
		return do(ctx, dir, append(append([]string{"apt-get", "-qq"}, options...), args...)...)
	}
	if err := aptGet("update"); err != nil {
		return err
	}
	// A mirror may lack a further tarball of a package; the first is enough.
	sourceErr := aptGet("source", "--tar-only", name)
	tarballs, err := filepath.Glob(filepath.Join(dir, "*.orig.tar.*"))
	if err != nil || len(tarballs) == 0 {
		return errors.Join(err, sourceErr, fmt.Errorf("no sources of %s", name))
	}
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o755); err != nil {
		return err
	}
	return do(ctx, dir, "tar", "--extract", "--file", tarballs[0], "--directory", "src", "--strip-components=1")
}

// securityUpdates marks the distributions that mirrors often have no sources of; the release's own do for tests.
const securityUpdates = "-security"

// sourceList is the machine's own lists of packages with the sources of each in place of the binaries.
func sourceList() ([]byte, error) {
	if text, err := os.ReadFile("/etc/apt/sources.list.d/debian.sources"); err == nil {
		return deb822(text), nil
	}
	text, err := os.ReadFile("/etc/apt/sources.list")
	if err != nil {
		return nil, fmt.Errorf("where this machine's packages come from: %w", err)
	}
	var list bytes.Buffer
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "deb "); ok && !strings.Contains(line, securityUpdates) {
			list.WriteString("deb-src " + rest)
		}
	}
	return list.Bytes(), nil
}

// deb822 turns stanzas of a .sources file into lines of a .list file.
func deb822(text []byte) []byte {
	var list bytes.Buffer
	for stanza := range strings.SplitSeq(string(text), "\n\n") {
		field := map[string]string{}
		for line := range strings.Lines(stanza) {
			if key, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
				field[key] = strings.TrimSpace(value)
			}
		}
		if field["URIs"] == "" {
			continue
		}
		signed := ""
		if key := field["Signed-By"]; key != "" {
			signed = "[signed-by=" + key + "] "
		}
		for distribution := range strings.FieldsSeq(field["Suites"]) {
			if strings.Contains(distribution, securityUpdates) {
				continue
			}
			fmt.Fprintf(&list, "deb-src %s%s %s %s\n", signed, field["URIs"], distribution, field["Components"])
		}
	}
	return list.Bytes()
}

// npmPackage unpacks a version of a package of npm into dir/package and installs what it and its tests need.
func npmPackage(ctx context.Context, dir, version string, forTests ...string) error {
	if err := do(ctx, dir, "npm", "pack", "--silent", version); err != nil {
		return err
	}
	tarballs, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(tarballs) != 1 {
		return errors.Join(err, fmt.Errorf("npm pack %s has brought %d tarballs", version, len(tarballs)))
	}
	if err := do(ctx, dir, "tar", "--extract", "--file", tarballs[0]); err != nil {
		return err
	}
	install := []string{"npm", "install", "--omit=dev", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"}
	if err := do(ctx, filepath.Join(dir, "package"), install...); err != nil {
		return err
	}
	// Beside the package and not in it, where they are left out as packages for its developers.
	return do(ctx, dir, append(append(install, "--prefix", dir), forTests...)...)
}

// goModule copies a version of a Go module into dir/src, where its tests can be built.
func goModule(ctx context.Context, dir, path, version string) error {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go mod download %s@%s: %w\n%s", path, version, err, out)
	}
	folder, err := moduleDir(out)
	if err != nil {
		return err
	}
	if err := do(ctx, dir, "cp", "-r", folder, "src"); err != nil {
		return err
	}
	return do(ctx, dir, "chmod", "-R", "u+w", "src")
}

func lines(out []byte) []string { return strings.Split(string(out), "\n") }
