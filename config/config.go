package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/dormousemq/dormouse"
)

// A File is what a configuration file says, as the library takes it.
type File struct {
	// Options has the prefix, the ladder's maximum and resolution, and the header that counts attempts.
	Options dormouse.Options
	// Topology is what is to be declared.
	Topology dormouse.Topology
	// Consumers are the settings of the work queues that have a retry policy, by queue.
	Consumers map[string]dormouse.ConsumeOptions
}

// An Error says what is wrong with a configuration file, and where.
type Error struct {
	// File is the file's name, Line and Column (from 1) are the place in it; they are 0 when it is about the whole file.
	File         string
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Load reads a file. What is wrong in it is told by *[Error]s, joined by errors.Join when there are several.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return Read(path, f)
}

// Read reads a configuration. name is what errors call it.
func Read(name string, r io.Reader) (*File, error) {
	source, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	tree, err := parser.ParseBytes(source, 0)
	if err != nil {
		return nil, located(name, err)
	}
	if len(tree.Docs) > 1 {
		return nil, &Error{File: name, Message: "it has several documents, separated by ---; one is expected"}
	}
	var d document
	if len(tree.Docs) == 1 && tree.Docs[0].Body != nil {
		if err := yaml.NodeToValue(tree.Docs[0].Body, &d, yaml.Strict()); err != nil {
			return nil, located(name, err)
		}
	}
	c := &checker{name: name, tree: tree}
	f := d.file(c)
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	return f, nil
}

// located takes the place out of an error of the YAML library.
func located(name string, err error) error {
	e := &Error{File: name, Message: err.Error()}
	var at interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &at) {
		e.Message = at.GetMessage()
		e.at(at.GetToken())
	}
	if wrong, ok := errors.AsType[*valueError](err); ok {
		e.Message = wrong.Error()
		e.at(wrong.token)
	}
	return e
}

func (e *Error) at(t *token.Token) {
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
}

// A checker collects what is wrong, with its place.
type checker struct {
	name string
	tree *ast.File
	errs []error
}

// fail says what is wrong at a path of keys. When the last of them is not there, the place is that of the nearest that is.
func (c *checker) fail(err error, path ...string) {
	e := &Error{File: c.name, Message: err.Error()}
	if len(c.tree.Docs) > 0 {
		e.at(keyAt(c.tree.Docs[0].Body, path))
	}
	c.errs = append(c.errs, e)
}

// keyAt finds the token of the last key of path that is there, nil if not even the first is.
func keyAt(node ast.Node, path []string) *token.Token {
	if len(path) == 0 {
		return nil
	}
	mapping, ok := node.(ast.MapNode)
	if !ok {
		return nil
	}
	for entries := mapping.MapRange(); entries.Next(); {
		if key := entries.Key(); key.GetToken().Value == path[0] {
			if deeper := keyAt(entries.Value(), path[1:]); deeper != nil {
				return deeper
			}
			return key.GetToken()
		}
	}
	return nil
}

// check fails if err is not nil.
func (c *checker) check(err error, path ...string) {
	if err != nil {
		c.fail(err, path...)
	}
}
