package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/dormousemq/dormouse/internal/bench"
)

// ownBroker is a `dormouse serve` in a process of its own, with its data in a temporary folder.
type ownBroker struct {
	dir string
	url string
	cmd *exec.Cmd
}

func startOwn(ctx context.Context) (*ownBroker, error) {
	dir, err := os.MkdirTemp("", "dormouse-bench-")
	if err != nil {
		return nil, err
	}
	b := &ownBroker{dir: dir}
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

// start starts the process and waits until it is ready.
func (b *ownBroker) start(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	// The context does not end the process: it has to outlive an interrupt until the measurement has let go of it.
	b.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, "serve", "--data", b.dir, "--listen", "127.0.0.1:0", "--management-listen", managementOff, "--json", "--log-level", "error")
	b.cmd.Args[0] = "dormouse"
	b.cmd.Stderr = os.Stderr
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.cmd.Start(); err != nil {
		return fmt.Errorf("start a broker: %w", err)
	}
	var said ready
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &said)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the broker that was started did not become ready: %w", err), b.cmd.Process.Kill(), b.cmd.Wait())
	}
	b.url = said.URL
	return nil
}

func (b *ownBroker) process() bench.Process { return bench.Process{ID: b.cmd.Process.Pid, Dir: b.dir} }

// restarts are the ways to restart it: after an orderly end, and after a sudden one.
func (b *ownBroker) restarts() []bench.Restart {
	restart := func(name string, signal os.Signal) bench.Restart {
		return bench.Restart{Name: name, Do: func(ctx context.Context) (string, bench.Process, time.Time, error) {
			if err := b.end(signal); err != nil {
				return "", bench.Process{}, time.Time{}, err
			}
			began := time.Now()
			err := b.start(ctx)
			return b.url, b.process(), began, err
		}}
	}
	return []bench.Restart{restart("clean stop", syscall.SIGTERM), restart("kill", os.Kill)}
}

// end ends the process by a signal, or at once where there are no signals, and waits until it has ended.
func (b *ownBroker) end(signal os.Signal) error {
	if err := b.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		if err := b.cmd.Process.Kill(); err != nil {
			return err
		}
	}
	err := b.cmd.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); ended { // how it ended does not matter
		return nil
	}
	return err
}

// remove ends the process and deletes its data.
func (b *ownBroker) remove() error {
	return errors.Join(b.end(os.Kill), os.RemoveAll(b.dir))
}

// commandRestart is the restart of somebody else's broker by two shell commands; none without both of them.
func commandRestart(url, stop, start string) []bench.Restart {
	if stop == "" || start == "" {
		return nil
	}
	return []bench.Restart{{Name: "restart", Do: func(ctx context.Context) (string, bench.Process, time.Time, error) {
		if out, err := exec.CommandContext(ctx, "sh", "-c", stop).CombinedOutput(); err != nil {
			return "", bench.Process{}, time.Time{}, fmt.Errorf("%s: %w\n%s", stop, err, out)
		}
		began := time.Now()
		if err := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", start).Start(); err != nil {
			return "", bench.Process{}, time.Time{}, fmt.Errorf("%s: %w", start, err)
		}
		return url, bench.Process{}, began, nil
	}}}
}
