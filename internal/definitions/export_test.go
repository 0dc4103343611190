package definitions_test

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dormousemq/dormouse/internal/definitions"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// kept keeps global parameters in memory.
type kept map[string]definitions.GlobalParameter

func (k kept) All() (all []definitions.GlobalParameter, err error) {
	for _, p := range k {
		all = append(all, p)
	}
	return all, nil
}

func (k kept) Put(_ context.Context, p definitions.GlobalParameter) error {
	k[p.Name] = p
	return nil
}

var about = definitions.About{Version: "4.3.0", Cluster: "here"}

// What RabbitMQ has exported is imported, exported, imported and exported again: both times the same is written.
func TestExport(t *testing.T) {
	for _, file := range files(t, "rabbitmqctl-*.json", "http-*.json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a, b := newBroker(t), newBroker(t)
			a.Globals, b.Globals = kept{}, kept{}
			if err := definitions.Import(t.Context(), a, read(t, file)); err != nil {
				t.Fatal(err)
			}
			written, err := definitions.Export(a, about)
			if err != nil {
				t.Fatal(err)
			}
			if err := definitions.Import(t.Context(), b, written); err != nil {
				t.Fatalf("%v\n%s", err, written)
			}
			checkHost(t, b.Hosts.Host("team"))
			if again, err := definitions.Export(b, about); err != nil || len(again) != len(written) {
				t.Errorf("%v\n%s\nis written of\n%s", err, again, written)
			}
			if want := map[string]int{"max-connections": 50, "max-queues": 100}; !reflect.DeepEqual(b.Hosts.Host("team").Description().Limits, want) {
				t.Errorf("the limits are %v, want %v", b.Hosts.Host("team").Description().Limits, want)
			}
			if u, _ := b.Directory.User("alice"); u.Limits["max-channels"] != 7 {
				t.Errorf("alice has the limits %v", u.Limits)
			}
			if _, err := b.Directory.Authenticate("alice", "wonderland"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestExportOf(t *testing.T) {
	for _, file := range files(t, "vhost-*.json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a, b := newBroker(t), newBroker(t)
			if err := definitions.ImportInto(t.Context(), a, vhost.Default, read(t, file)); err != nil {
				t.Fatal(err)
			}
			written, err := definitions.ExportOf(a.Hosts.Host(vhost.Default), about)
			if err != nil {
				t.Fatal(err)
			}
			if err := definitions.ImportInto(t.Context(), b, vhost.Default, written); err != nil {
				t.Fatal(err)
			}
			checkHost(t, b.Hosts.Host(vhost.Default))
		})
	}
}

func TestExportLeavesOutExclusiveQueues(t *testing.T) {
	b := newBroker(t)
	h := b.Hosts.Host(vhost.Default)
	if _, err := h.DeclareQueue(t.Context(), new(int), vhost.QueueDeclare{Name: "mine", Exclusive: true}); err != nil {
		t.Fatal(err)
	}
	if err := h.BindQueue(t.Context(), h.Queue("mine").Owner(), vhost.Bind{Source: "amq.topic", Destination: "mine", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	written, err := definitions.Export(b, about)
	if err != nil || strings.Contains(string(written), "mine") {
		t.Errorf("%v, %s", err, written)
	}
}
