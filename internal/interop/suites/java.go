package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// runnerSource runs JUnit classes and prints a line for each test.
//
//go:embed java/Runner.java
var runnerSource []byte

// javaPackages has the client itself in binary too: its generated part is not in the sources.
var javaPackages = "librabbitmq-client-java junit4 libhamcrest-java libmockito-java libbyte-buddy-java libobjenesis-java " +
	"libdropwizard-metrics-java libslf4j-java libcommons-cli-java default-jdk-headless dpkg-dev"

var javaJars = "amqp-client junit4 hamcrest-all mockito-core byte-buddy byte-buddy-agent objenesis metrics-core slf4j-api commons-cli"

func javaClient() suite {
	return suite{
		name:     "java-client",
		about:    "RabbitMQ's Java client 5.0.0: its client, functional and server tests",
		packages: strings.Fields(javaPackages),
		prepare:  prepareJava,
		run:      runJava,
	}
}

func classPath() string {
	var path []string
	for jar := range strings.FieldsSeq(javaJars) {
		path = append(path, "/usr/share/java/"+jar+".jar")
	}
	return strings.Join(path, ":")
}

// suiteMember finds the classes that the three collections of tests name.
var suiteMember = regexp.MustCompile(`(?m)^\s*(\w+)\.class,?`)

// noClasses are the collections' helpers, and what needs a library that Debian does not have (Awaitility).
const noClasses = " Metrics RequiredPropertiesSuite Suite "

func prepareJava(ctx context.Context, dir string) error {
	if err := debianSource(ctx, dir, "rabbitmq-java-client"); err != nil {
		return err
	}
	root := filepath.Join(dir, "src", "src", "test", "java")
	byName := map[string]string{}
	var sources []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		name, isJava := strings.CutSuffix(filepath.Base(path), ".java")
		switch {
		case err != nil:
			return err
		case !isJava, name == "Metrics", strings.Contains(path, "/performance/"):
			return nil
		}
		rel, err := filepath.Rel(root, strings.TrimSuffix(path, ".java"))
		byName[name] = strings.ReplaceAll(rel, "/", ".")
		sources = append(sources, path)
		return err
	})
	if err != nil {
		return err
	}
	var classes []string
	for _, collection := range []string{"ClientTests", "functional/FunctionalTests", "server/ServerTests"} {
		text, err := os.ReadFile(root + "/com/rabbitmq/client/test/" + collection + ".java")
		if err != nil {
			return err
		}
		for _, found := range suiteMember.FindAllSubmatch(text, -1) {
			name := string(found[1])
			if class := byName[name]; class != "" && !strings.Contains(noClasses, " "+name+" ") {
				classes = append(classes, class)
			}
		}
	}
	if len(classes) == 0 {
		return fmt.Errorf("the collections of tests in %s name no class", root)
	}
	if err := os.WriteFile(filepath.Join(dir, "classes.txt"), []byte(strings.Join(classes, "\n")), 0o644); err != nil {
		return err
	}
	if err := withoutMetrics(root + "/com/rabbitmq/client/test/functional/FunctionalTests.java"); err != nil {
		return err
	}
	runner := filepath.Join(dir, "Runner.java")
	if err := os.WriteFile(runner, runnerSource, 0o644); err != nil {
		return err
	}
	list := filepath.Join(dir, "sources.txt")
	if err := os.WriteFile(list, []byte(strings.Join(append(sources, runner), "\n")), 0o644); err != nil {
		return err
	}
	return do(ctx, dir, "javac", "-nowarn", "-encoding", "UTF-8", "-d", "classes", "-cp", classPath(), "@"+list)
}

// withoutMetrics takes the class that cannot be built out of the collection that names it.
func withoutMetrics(collection string) error {
	text, err := os.ReadFile(collection)
	if err != nil {
		return err
	}
	return os.WriteFile(collection, bytes.ReplaceAll(text, []byte("Metrics.class"), []byte("Nack.class")), 0o644)
}

// managementEnv tells the rabbitmqctl that the Java tests call which management API to use.
const managementEnv = "SUITES_MANAGEMENT"

func runJava(ctx context.Context, dir string, to broker) (results, error) {
	ctl := filepath.Join(dir, "rabbitmqctl")
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	_ = os.Remove(ctl)
	if err := os.Symlink(self, ctl); err != nil {
		return nil, err
	}
	classes, err := os.ReadFile(filepath.Join(dir, "classes.txt"))
	if err != nil {
		return nil, err
	}
	res := results{}
	for class := range strings.FieldsSeq(string(classes)) {
		// A program a class, so that one that hangs holds up no other.
		out, ok, err := output(ctx, 90*time.Second, filepath.Join(dir, "src"), []string{managementEnv + "=" + to.management},
			"java", "-Drabbitmqctl.bin="+ctl, "-Dmake.bin=false", "-Dtest-broker.A.nodename=broker",
			"-Dtest-broker.A.node_port=5672", "-cp", filepath.Join(dir, "classes")+":"+classPath(), "Runner", class)
		if err != nil {
			return nil, err
		}
		if !ok {
			res.add(class[strings.LastIndexByte(class, '.')+1:]+" (all of the class in 90 s)", failed)
		}
		readMarked(out, res)
	}
	return res, nil
}

// marked is a line of a runner of ours.
var marked = regexp.MustCompile(`(?m)^RESULT (passed|failed|skipped) (.+)$`)

func readMarked(out []byte, into results) {
	for _, found := range marked.FindAllSubmatch(out, -1) {
		into.add(string(found[2]), outcome(found[1]))
	}
}
