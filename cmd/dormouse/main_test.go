package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"dormouse": main, "fetch": fetch})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Values[running] = &servers{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"serve": serve,
			"stop":  stop,
		},
	})
}

// fetch is a program that prints what a URL answers, or its status when that is not 200: fetch URL USER:PASSWORD.
func fetch() {
	user, password, _ := strings.Cut(os.Args[2], ":")
	request, err := http.NewRequest(http.MethodGet, os.Args[1], nil)
	if err != nil {
		log.Fatal(err)
	}
	request.SetBasicAuth(user, password)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		log.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		fmt.Println(answer.Status)
		os.Exit(1)
	}
	fmt.Println(string(body))
}

// exits runs a command that must end with the given exit code: exits CODE COMMAND [ARGUMENT...].
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := code(ts, ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func code(ts *testscript.TestScript, err error) int {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode()
	}
	ts.Check(err)
	return 0
}

// running is the key of a script's *servers.
const running = "running"

// servers are the brokers that a script has started and not stopped.
type servers struct{ running []*exec.Cmd }

// serve starts a broker on a free port, waits until it is ready, and puts its address into DORMOUSE_URL and ADDRESS:
// serve [FLAG...].
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serve [FLAG...]")
	}
	cmd := exec.Command("dormouse", append([]string{"serve", "--listen", "127.0.0.1:0", "--management-listen", "127.0.0.1:0", "--json"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.MkAbs("home"), "XDG_DATA_HOME=")
	cmd.Stderr = os.Stderr // not the script's, which does not expect writers beside it
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		ts.Fatalf("the broker did not become ready: %v: %v", err, cmd.Wait())
	}
	var ready struct{ URL, Address, Management string }
	ts.Check(json.Unmarshal(line, &ready))
	ts.Setenv("DORMOUSE_URL", ready.URL)
	ts.Setenv("ADDRESS", ready.Address)
	ts.Setenv("MANAGEMENT", ready.Management)
	s := ts.Value(running).(*servers)
	s.running = append(s.running, cmd)
}

// stop sends a signal to the broker that was started last and waits for its end, which must be in order: stop INT|TERM|KILL.
func stop(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(running).(*servers)
	if neg || len(args) != 1 || len(s.running) == 0 {
		ts.Fatalf("usage, after serve: stop INT|TERM|KILL")
	}
	signal := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[args[0]]
	last := len(s.running) - 1
	ts.Check(s.running[last].Process.Signal(signal))
	got := code(ts, s.running[last].Wait())
	s.running = s.running[:last]
	if signal != syscall.SIGKILL && got != 0 {
		ts.Fatalf("exit code %d after SIG%s, want 0", got, args[0])
	}
}
