// Command suites runs the test suites of other projects' AMQP clients on a broker and compares brokers by them.
//
//	suites list
//	suites run amqplib --url amqp://guest:guest@127.0.0.1:5672/ --management http://127.0.0.1:15672
//	suites compare all --broker 'RabbitMQ 3.10=amqp://…,http://…' --broker 'dormouse=amqp://…'
//	suites compare all --broker … --broker … --markdown docs/clients.md
//
// It fetches each suite with the package tools of the machine (apt-get source, npm, the Go module cache) into a cache
// folder, builds it there, and says which packages it needs. Suites that want their broker at localhost:5672 and its
// management API at localhost:15672 get both through a forwarder, so these ports have to be free. The suites leave their
// queues and exchanges behind in "/" and run for minutes: give them a broker that nobody else needs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// The Java suite calls its rabbitmqctl by one path, without room for a command of ours.
	if filepath.Base(os.Args[0]) == "rabbitmqctl" {
		os.Exit(rabbitmqctl(context.Background(), os.Getenv(managementEnv), os.Args[1:], os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "suites",
		Short:         "Run other clients' test suites on AMQP brokers and compare the brokers",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cache := root.PersistentFlags().String("cache", "", "where suites are fetched and built (default: dormouse-suites in the user's cache folder)")
	root.AddCommand(listCommand(), runCommand(cache), compareCommand(cache))
	return root
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Name the suites and the packages that each needs",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			for _, s := range all() {
				fmt.Fprintf(cmd.OutOrStdout(), "%-14s %s\n%14s needs: %s\n", s.name, s.about, "", strings.Join(s.packages, " "))
			}
		},
	}
}

func runCommand(cache *string) *cobra.Command {
	var url, management string
	cmd := &cobra.Command{
		Use:   "run NAME|all",
		Short: "Run a suite on one broker and print the result of each test",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := newBroker("broker", url, management)
			if err != nil {
				return err
			}
			runs, err := runAll(cmd.Context(), *cache, args[0], []broker{to}, cmd.ErrOrStderr())
			for _, r := range runs {
				for _, name := range r.names() {
					fmt.Fprintf(cmd.OutOrStdout(), "%-7s %s %s\n", r.results[0][name], r.suite.name, name)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", r.suite.name, r.results[0].count())
			}
			return err
		},
	}
	cmd.Flags().StringVar(&url, "url", "amqp://guest:guest@127.0.0.1:5672/", "the broker")
	cmd.Flags().StringVar(&management, "management", "", "the broker's management API, http://HOST:PORT")
	return cmd
}

func compareCommand(cache *string) *cobra.Command {
	var brokers []string
	var markdown string
	cmd := &cobra.Command{
		Use:   "compare NAME|all --broker NAME=URL[,MANAGEMENT] --broker NAME=URL[,MANAGEMENT]…",
		Short: "Run a suite on several brokers and print the tests that differ",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(brokers) < 2 {
				return errors.New("give at least two brokers, each as --broker NAME=URL[,MANAGEMENT]")
			}
			var targets []broker
			for _, text := range brokers {
				name, urls, ok := strings.Cut(text, "=")
				if !ok {
					return fmt.Errorf("--broker %q is not NAME=URL[,MANAGEMENT]", text)
				}
				url, management, _ := strings.Cut(urls, ",")
				target, err := newBroker(name, url, management)
				if err != nil {
					return err
				}
				targets = append(targets, target)
			}
			runs, err := runAll(cmd.Context(), *cache, args[0], targets, cmd.ErrOrStderr())
			if markdown == "" {
				writeText(cmd.OutOrStdout(), targets, runs)
				return err
			}
			file, createErr := os.Create(markdown)
			if createErr != nil {
				return errors.Join(err, createErr)
			}
			writeMarkdown(file, targets, runs)
			return errors.Join(err, file.Close())
		},
	}
	cmd.Flags().StringArrayVar(&brokers, "broker", nil, "a broker as NAME=URL[,MANAGEMENT]; repeat it")
	cmd.Flags().StringVar(&markdown, "markdown", "", "write the comparison as a page to this file")
	return cmd
}

// chosen is the suites that a name stands for.
func chosen(name string) ([]suite, error) {
	suites := all()
	if name == "all" {
		return suites, nil
	}
	var names []string
	for _, s := range suites {
		names = append(names, s.name)
	}
	at := slices.Index(names, name)
	if at < 0 {
		return nil, fmt.Errorf("no suite %q; there are %s, and all", name, strings.Join(names, ", "))
	}
	return suites[at : at+1], nil
}
