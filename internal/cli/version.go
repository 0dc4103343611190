package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what `dormouse version --json` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`     // of the commit, RFC 3339
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes that are not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(env Environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  dormouse version --json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			info := readVersion()
			if asJSON {
				return printJSON(env.Stdout, info)
			}
			fmt.Fprintf(env.Stdout, "dormouse %s\n", info.Version)
			if info.Commit != "" {
				fmt.Fprintf(env.Stdout, "commit   %s %s\n", info.Commit, info.Time)
			}
			fmt.Fprintf(env.Stdout, "built by %s for %s\n", info.Go, info.Platform)
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// readVersion reads what the Go toolchain wrote into the program.
func readVersion() versionInfo {
	info := versionInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if build.Main.Version != "" {
		info.Version = build.Main.Version
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Commit = setting.Value
		case "vcs.time":
			info.Time = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info
}
