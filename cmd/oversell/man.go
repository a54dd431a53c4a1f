package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a man page for each command to a directory",
		Example: "  oversell man ~/.local/share/man/man1",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			date, err := pageDate(time.Now())
			if err != nil {
				return err
			}
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return environment{err}
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it would add the date a second time
			header := &doc.GenManHeader{Section: "1", Source: "oversell " + buildVersion(), Manual: "Oversell Manual", Date: &date}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return environment{err}
			}
			tellf(cmd.ErrOrStderr(), "man pages in %s\n", args[0])
			return nil
		},
	}
}

// pageDate returns the date of the man pages: $SOURCE_DATE_EPOCH, for reproducible builds, or now.
func pageDate(now time.Time) (time.Time, error) {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		return now, nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return now, fmt.Errorf("$SOURCE_DATE_EPOCH: %q must be a number of seconds", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
