package repository

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module's folder, seen from this package.
const root = "../.."

const module = "github.com/dormousemq/dormouse"

// listed is what `go list` tells of a package.
type listed struct {
	ImportPath string
	Doc        string
	GoFiles    []string
	Imports    []string // of the package, without its tests
	Deps       []string // all of Imports and theirs
}

// rel is the package's path inside the module; the module's own package is ".".
func (p listed) rel() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Doc,GoFiles,Imports,Deps", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all = append(all, p)
	}
	if len(all) < 2 {
		t.Fatalf("go list sees %d packages", len(all))
	}
	return all
}

// files calls f with every file of the tree that people write: not what a build or a package manager leaves behind.
// The name is relative to the root, with slashes.
func files(t *testing.T, f func(name string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", "node_modules", "dist":
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if !bytes.ContainsRune(content, 0) {
			f(filepath.ToSlash(name), content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goFiles calls f with the syntax of every Go file of the tree.
func goFiles(t *testing.T, f func(name string, file *ast.File, set *token.FileSet)) {
	t.Helper()
	seen := 0
	files(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		seen++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		f(name, file, set)
	})
	if seen == 0 {
		t.Fatal("no Go files found")
	}
}
