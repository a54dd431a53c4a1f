package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"oversell/history"
	"oversell/reports"
)

// version and commit are set by release builds with -ldflags.
var version, commit string

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the versions of file formats",
		Args:  between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "oversell %s (commit %s, %s %s/%s), %s, %s\n",
				buildVersion(), buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, history.Schema, reports.Schema)
			return printing(err)
		},
	}
}

// buildVersion returns the version of a release, or the one that the go command recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// buildCommit returns the commit of a release, or the one that the go command recorded: none outside a repository.
func buildCommit() string {
	if commit != "" {
		return commit
	}
	revision, modified := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = "+changes"
			}
		}
	}
	return revision + modified
}
