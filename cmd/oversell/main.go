// Command oversell tells whether a flash sale or a distributed lock on Redis
// can go wrong, by driving many clients against it and judging what they saw.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"oversell/database"
	"oversell/reports"
	"oversell/target"
)

func main() {
	logging.Disable() // the driver reports failed dials on stderr by itself; ours come as errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end. From a moment later on a second one kills:
	// some send a signal to a process and again to its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(patience, stop) })
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// patience is how long after the first signal another one counts as the same.
const patience = time.Second

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	code := reports.ExitPass
	root := &cobra.Command{
		Use:           "oversell",
		Short:         "Can we oversell? Runs locks and sales on a real Redis and judges what happened",
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(runCommand(&code), compareCommand(&code), exploreCommand(&code), checkCommand(&code), reportCommand(), proxyCommand(&code), listCommand(), versionCommand())
	root.AddCommand(claimsCommand(&code))
	root.AddCommand(gateCommand(&code))
	if err := root.ExecuteContext(ctx); err != nil {
		// One line, also for what the libraries below say in several.
		fmt.Fprintln(stderr, "oversell:", strings.Join(strings.Fields(err.Error()), " "))
		return max(code, exitCode(err))
	}
	return code
}

// exitCode is the code for an error: everything that is not about the
// surroundings is about how the program was called.
func exitCode(err error) int {
	if errors.Is(err, target.ErrEnvironment) || errors.Is(err, database.ErrEnvironment) || errors.As(err, new(environment)) {
		return reports.ExitEnvironment
	}
	return reports.ExitUsage
}

// environment marks an error of the surroundings.
type environment struct{ error }

func (e environment) Unwrap() error { return e.error }
