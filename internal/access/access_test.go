package access

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/dormousemq/dormouse/internal/store"
)

// bench is a directory in a store that outlives it.
type bench struct {
	*Directory
	t      *testing.T
	fs     vfs.FS
	store  *store.Store
	vhosts []string
	gone   []string // users who were reported as deleted
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, fs: vfs.NewMem(), vhosts: []string{"/", "other"}}
	b.open()
	t.Cleanup(func() {
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) open() {
	b.t.Helper()
	var err error
	if b.store, err = store.Open("data", store.Options{FS: b.fs}); err != nil {
		b.t.Fatal(err)
	}
	b.Directory, err = Open(Options{
		Store: b.store, Logger: slog.New(slog.DiscardHandler),
		VHost:   func(name string) bool { return slices.Contains(b.vhosts, name) },
		Deleted: func(name string) { b.gone = append(b.gone, name) },
	})
	b.must(err)
}

func (b *bench) restart() {
	b.t.Helper()
	b.must(b.store.Close())
	b.open()
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) user(name, password string, tags ...string) {
	b.t.Helper()
	b.must(b.PutUser(b.t.Context(), User{Name: name, PasswordHash: HashPassword(password), Tags: tags}))
}

func (b *bench) login(name, password string) *Identity {
	b.t.Helper()
	i, err := b.Authenticate(name, password)
	b.must(err)
	return i
}

// Hashes that RabbitMQ 4.3 has made, or that its documentation shows.
func TestHashesOfRabbitMQ(t *testing.T) {
	b := newBench(t)
	sum := func(algorithm string) string {
		salted := append([]byte("salt"), "secret"...)
		return base64.StdEncoding.EncodeToString(append([]byte("salt"), digest(algorithm)(salted)...))
	}
	for name, u := range map[string]struct{ hash, algorithm, password string }{
		"documentation": {"kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", SHA256, "test12"},
		"a node's":      {"B8geAtZhJJJInqc9vNvdDpZmdCG83BsagSMA3thIxbN0jcPq", SHA256, "guest"},
		"no algorithm":  {"B8geAtZhJJJInqc9vNvdDpZmdCG83BsagSMA3thIxbN0jcPq", "", "guest"},
		"sha512":        {sum(SHA512), SHA512, "secret"},
		"md5":           {sum(MD5), MD5, "secret"},
	} {
		b.must(b.PutUser(t.Context(), User{Name: name, PasswordHash: u.hash, HashingAlgorithm: u.algorithm}))
		b.login(name, u.password)
		for _, wrong := range []string{u.password + "x", "x", "salt" + u.password} {
			if _, err := b.Authenticate(name, wrong); !errors.Is(err, ErrRefused) {
				t.Errorf("%s: %q is let in: %v", name, wrong, err)
			}
		}
	}
}

func TestHashPasswordIsSalted(t *testing.T) {
	if one, two := HashPassword("x"), HashPassword("x"); one == two {
		t.Errorf("twice %s", one)
	}
}

func TestPutUserRefuses(t *testing.T) {
	b := newBench(t)
	for want, u := range map[string]User{
		"needs a name":      {},
		"not base64":        {Name: "u", PasswordHash: "?"},
		"has 3 bytes":       {Name: "u", PasswordHash: "YWJj"},
		"unknown hashing":   {Name: "u", PasswordHash: HashPassword("x"), HashingAlgorithm: "rot13"},
		"one of rabbit_pas": {Name: "u", PasswordHash: HashPassword("x"), HashingAlgorithm: SHA512},
	} {
		if err := b.PutUser(t.Context(), u); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", u, err, want)
		}
	}
	if users := b.Users(); len(users) != 0 {
		t.Errorf("there are users: %v", users)
	}
}

func TestAuthenticate(t *testing.T) {
	b := newBench(t)
	b.user("alice", "secret", "management", "monitoring")
	b.must(b.PutUser(t.Context(), User{Name: "nopassword"}))
	for _, c := range []struct {
		name, password string
		want           error
	}{
		{"alice", "secret", nil},
		{"alice", "Secret", ErrRefused},
		{"alice", "", ErrBlank},
		{"nopassword", "", ErrBlank},
		{"nopassword", "x", ErrRefused},
		{"nobody", "secret", ErrRefused},
		{"nobody", "", ErrBlank},
	} {
		i, err := b.Authenticate(c.name, c.password)
		if !errors.Is(err, c.want) || (i == nil) != (err != nil) {
			t.Errorf("%s with %q: %v, want %v", c.name, c.password, err, c.want)
		}
	}
	if i := b.login("alice", "secret"); !i.Has("monitoring") || i.Has("administrator") || i.Name() != "alice" {
		t.Errorf("alice is %+v", i)
	}
	if _, err := b.Trust("nopassword"); err != nil {
		t.Errorf("a user without a password is not trusted: %v", err)
	}
	if _, err := b.Trust("nobody"); !errors.Is(err, ErrRefused) {
		t.Errorf("nobody is trusted: %v", err)
	}
	b.user("alice", "changed")
	if _, err := b.Authenticate("alice", "secret"); !errors.Is(err, ErrRefused) {
		t.Errorf("the old password still works: %v", err)
	}
}

func TestPermissions(t *testing.T) {
	b := newBench(t)
	b.user("alice", "x")
	i := b.login("alice", "x")
	if i.MayEnter("/") || i.MayQueue(Read, "/", "q") {
		t.Error("somebody without permissions may do something")
	}
	b.must(b.PutPermission(t.Context(), Permission{User: "alice", VHost: "/", Configure: "", Write: "^alice-", Read: `^(?!amq\.).*`}))
	for _, c := range []struct {
		kind            Kind
		vhost, resource string
		want            bool
	}{
		{Configure, "/", "q", false},
		{Configure, "/", "", false}, // the default exchange has a name here
		{Write, "/", "alice-q", true},
		{Write, "/", "q-alice-", false},
		{Write, "other", "alice-q", false},
		{Read, "/", "anything", true},
		{Read, "/", "amq.topic", false},
		{Read, "/", "", false}, // amq.default
	} {
		if got := i.MayExchange(c.kind, c.vhost, c.resource); got != c.want {
			t.Errorf("%v %q in %q: %t", c.kind, c.resource, c.vhost, got)
		}
	}
	if !i.MayEnter("/") || i.MayEnter("other") {
		t.Error("who has permissions may enter, and nobody else")
	}
	before := i.Generation()
	if existed, err := b.DeletePermission(t.Context(), "alice", "/"); !existed || err != nil {
		t.Error(existed, err)
	}
	if i.MayEnter("/") || i.MayQueue(Read, "/", "q") {
		t.Error("a deleted permission still holds")
	}
	if i.Generation() == before {
		t.Error("the generation is the same after a change")
	}
	if existed, _ := b.DeletePermission(t.Context(), "alice", "/"); existed {
		t.Error("it was deleted twice")
	}
}

func TestTopicPermissions(t *testing.T) {
	b := newBench(t)
	b.user("alice", "x")
	i := b.login("alice", "x")
	if i.Topics(Write, "/", "amq.topic") != nil {
		t.Error("there is a restriction that nobody has made")
	}
	b.must(b.PutTopicPermission(t.Context(), TopicPermission{User: "alice", VHost: "other", Exchange: "amq.topic", Write: `^{vhost}\.{username}$`, Read: ""}))
	keys := i.Topics(Write, "other", "amq.topic")
	if keys == nil || !keys.Match("other.alice") || keys.Match("other.bob") || keys.Match("{vhost}.{username}") {
		t.Error("the variables are not filled in")
	}
	if keys := i.Topics(Read, "other", "amq.topic"); keys == nil || keys.Match("k") {
		t.Error("an empty expression allows keys")
	}
	if i.Topics(Write, "other", "x") != nil || i.Topics(Write, "/", "amq.topic") != nil {
		t.Error("it holds elsewhere too")
	}
	if existed, err := b.DeleteTopicPermission(t.Context(), "alice", "other", "amq.topic"); !existed || err != nil {
		t.Error(existed, err)
	}
	if i.Topics(Write, "other", "amq.topic") != nil {
		t.Error("a deleted topic permission still holds")
	}
}

func TestPutPermissionRefuses(t *testing.T) {
	b := newBench(t)
	b.user("alice", "x")
	ctx := t.Context()
	for _, c := range []struct {
		p    Permission
		want error
	}{
		{Permission{User: "bob", VHost: "/"}, ErrNoUser},
		{Permission{User: "alice", VHost: "nowhere"}, ErrNoVHost},
	} {
		if err := b.PutPermission(ctx, c.p); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.p, err, c.want)
		}
		if err := b.PutTopicPermission(ctx, TopicPermission{User: c.p.User, VHost: c.p.VHost, Exchange: "x"}); !errors.Is(err, c.want) {
			t.Errorf("%+v of a topic: %v, want %v", c.p, err, c.want)
		}
	}
	for _, err := range []error{
		b.PutPermission(ctx, Permission{User: "alice", VHost: "/", Read: "("}),
		b.PutTopicPermission(ctx, TopicPermission{User: "alice", VHost: "/", Exchange: "x", Write: "("}),
	} {
		if e, ok := errors.AsType[*PatternError](err); !ok || e.Pattern != "(" {
			t.Errorf("a wrong expression: %v", err)
		}
	}
	if len(b.Permissions())+len(b.TopicPermissions()) != 0 {
		t.Error("something was permitted all the same")
	}
}

func TestEverythingIsDurable(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	awkward := "a\x00b/\x01\xff"
	b.vhosts = append(b.vhosts, awkward)
	b.must(b.PutUser(ctx, User{Name: awkward, PasswordHash: HashPassword("x"), Tags: []string{"a", "b"}, Limits: map[string]int{"max-connections": 3}}))
	b.user("bob", "x")
	p := Permission{User: awkward, VHost: awkward, Configure: "a", Write: "b", Read: "c"}
	topic := TopicPermission{User: awkward, VHost: awkward, Exchange: awkward, Write: "a", Read: "b"}
	b.must(b.PutPermission(ctx, p))
	b.must(b.PutTopicPermission(ctx, topic))
	users := b.Users()
	b.restart()
	got := b.Users()
	if len(got) != 2 || got[0].PasswordHash != users[0].PasswordHash || !slices.Equal(got[0].Tags, []string{"a", "b"}) || got[0].Limits["max-connections"] != 3 {
		t.Errorf("the users are %+v, were %+v", got, users)
	}
	if all := b.Permissions(); len(all) != 1 || all[0] != p {
		t.Errorf("the permissions are %+v", all)
	}
	if all := b.TopicPermissions(); len(all) != 1 || all[0] != topic {
		t.Errorf("the topic permissions are %+v", all)
	}
	b.login(awkward, "x")
	if existed, err := b.DeleteUser(ctx, awkward); !existed || err != nil {
		t.Fatal(existed, err)
	}
	b.restart()
	if len(b.Users()) != 1 || len(b.Permissions()) != 0 || len(b.TopicPermissions()) != 0 {
		t.Error("something is left of a deleted user")
	}
	if !slices.Equal(b.gone, []string{awkward}) {
		t.Errorf("%q were reported as deleted", b.gone)
	}
	if existed, _ := b.DeleteUser(ctx, awkward); existed {
		t.Error("deleted twice")
	}
}

func TestDropVHost(t *testing.T) {
	b := newBench(t)
	b.user("alice", "x")
	for _, vhost := range b.vhosts {
		b.must(b.PutPermission(t.Context(), Permission{User: "alice", VHost: vhost}))
		b.must(b.PutTopicPermission(t.Context(), TopicPermission{User: "alice", VHost: vhost, Exchange: "x"}))
	}
	tx := b.store.Begin()
	b.DropVHost(tx, "other")
	b.must(tx.Wait(t.Context()))
	b.restart()
	if p, topics := b.Permissions(), b.TopicPermissions(); len(p) != 1 || p[0].VHost != "/" || len(topics) != 1 || topics[0].VHost != "/" {
		t.Errorf("left are %+v and %+v", p, topics)
	}
}

func TestSeed(t *testing.T) {
	ctx := t.Context()
	names := func(b *bench) (names []string) {
		for _, u := range b.Users() {
			names = append(names, u.Name)
		}
		return names
	}
	b := newBench(t)
	for range 2 {
		b.must(b.Seed(ctx, nil, "/"))
		if got := names(b); !slices.Equal(got, []string{"guest"}) {
			t.Fatalf("a new broker has the users %q", got)
		}
		if i := b.login("guest", "guest"); !i.Has(Administrator) || !i.MayQueue(Configure, "/", "q") {
			t.Error("guest may not do everything")
		}
		b.restart()
	}
	b.must(b.Seed(ctx, map[string]string{"alice": "one", "bob": ""}, "/"))
	if got := names(b); !slices.Equal(got, []string{"alice", "bob"}) {
		t.Fatalf("with a list the users are %q", got)
	}
	if _, err := b.Authenticate("bob", ""); !errors.Is(err, ErrBlank) {
		t.Errorf("bob without a password: %v", err)
	}
	b.user("carol", "x")
	b.restart()
	b.must(b.Seed(ctx, map[string]string{"alice": "two", "carol": "y"}, "/"))
	if got := names(b); !slices.Equal(got, []string{"alice", "carol"}) {
		t.Fatalf("with another list the users are %q", got)
	}
	b.login("alice", "two")
	b.login("carol", "y")
	if b.login("carol", "y").Has(Administrator) {
		t.Error("the list has made an administrator of carol")
	}
	b.restart()
	b.must(b.Seed(ctx, nil, "/"))
	if got := names(b); !slices.Equal(got, []string{"carol"}) {
		t.Fatalf("without a list the users are %q", got)
	}
	if err := b.Seed(ctx, map[string]string{"": "x"}, "/"); err == nil {
		t.Error("a user without a name was accepted")
	}
}

// A changed password of guest must not be undone by the next start.
func TestSeedLeavesAChangedGuestAlone(t *testing.T) {
	b := newBench(t)
	b.must(b.Seed(t.Context(), nil, "/"))
	b.user(Guest, "changed")
	b.restart()
	b.must(b.Seed(t.Context(), nil, "/"))
	b.login(Guest, "changed")
	if _, err := b.Authenticate(Guest, Guest); err == nil {
		t.Error("guest has the old password again")
	}
}
