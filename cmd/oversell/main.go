// Command oversell tests flash sales, distributed locks and task queues on Redis: it drives many clients against
// them and judges what they observed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // $TZ works in images without time zone data, such as scratch

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/database"
	"oversell/internal/guard"
	"oversell/internal/limits"
	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/server"
	"oversell/variant"
)

func main() {
	if guard.Asked() {
		os.Exit(guard.Serve(guard.Roles{server.Undoer: server.NewKeeper, database.Undoer: database.NewKeeper}))
	}
	logging.Disable()              // the driver also prints failed dials to stderr; oversell reports them as errors
	signal.Ignore(syscall.SIGPIPE) // a run is judged and saved even if its output pipe was closed
	ignored := signal.Ignored(os.Interrupt)
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	// The first signal asks for an orderly end. Another one within patience is ignored, because some programs signal a
	// process and then its group. A later one kills the process.
	context.AfterFunc(ctx, func() {
		time.AfterFunc(patience, func() {
			if stop(); ignored {
				endOnInterrupt(os.Exit)
			}
		})
	})
	os.Exit(execute(guard.With(ctx), os.Args[1:], os.Stdout, os.Stderr))
}

// endOnInterrupt ends the process at the next interrupt, also if it was started with interrupts ignored, as shells
// start background jobs. There the default action, which signal.Stop restores, is to ignore the signal.
func endOnInterrupt(exit func(int)) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	go func() {
		<-interrupts
		exit(128 + int(syscall.SIGINT))
	}()
}

// stopSignals returns the signals that ask for an orderly end. SIGHUP is not one of them if it was ignored at the
// start, as under nohup.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// patience is how long after the first signal further ones are ignored.
const patience = time.Second

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	code := reports.ExitPass
	out := &output{Writer: stdout}
	root := &cobra.Command{
		Use:           "oversell",
		Short:         "Test locks, sales, queues, id generators and dispatches on Redis under load and faults",
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(explainFlag)
	root.AddCommand(runCommand(&code), compareCommand(&code), exploreCommand(&code), checkCommand(&code), reportCommand(), proxyCommand(&code), listCommand(), versionCommand())
	root.AddCommand(claimsCommand(&code))
	root.AddCommand(gateCommand(&code))
	root.AddCommand(manCommand(), systemCommand(&code))
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		for _, note := range campaign.Notes(cmd.Flags()) {
			tellf(cmd.ErrOrStderr(), "note: %s\n", note)
		}
	}
	registerCompletions(root)
	setUpHelp(root, helpWidth(stdout))
	err := root.ExecuteContext(ctx)
	if out.err != nil && !errors.Is(err, out.err) {
		err = errors.Join(err, printing(out.err))
	}
	if out.err != nil {
		code = weightier(code, reports.ExitEnvironment)
	}
	if err != nil {
		for _, line := range errorLines(err) {
			tellf(stderr, "oversell: %s\n", line)
		}
		return weightier(code, exitCode(err))
	}
	return code
}

// explainFlag adds to an error about a flag what would be right.
func explainFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return limits.Explain(err)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := variant.Nearest(unknown.GetSpecifiedName(), names); len(near) > 0 {
		return fmt.Errorf("%w: did you mean --%s?", err, strings.Join(near, " or --"))
	}
	return err
}

// between returns a check that a command has least to most arguments. A negative most means any number.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch n := len(args); {
		case n < least:
			return fmt.Errorf("an argument is missing: the usage is %q", cmd.UseLine())
		case most >= 0 && n > most:
			return fmt.Errorf("unexpected argument %q: the usage is %q", args[most], cmd.UseLine())
		}
		return nil
	}
}

// output is stdout. It remembers the first write error, so that callers need not check each write and no lost
// output goes unreported.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// weightier returns the exit code that takes precedence: a finding outweighs a usage error.
func weightier(a, b int) int {
	for _, code := range []int{reports.ExitEnvironment, reports.ExitViolated, reports.ExitInconclusive, reports.ExitRegression, reports.ExitUsage} {
		if a == code || b == code {
			return code
		}
	}
	return reports.ExitPass
}

// errorLines formats an error: one line for each joined error, one for a library's message of several lines, and
// only one for all writes that failed on a full disk.
func errorLines(err error) []string {
	full := false
	return linesOf(err, &full)
}

// linesOf implements errorLines; full records that a full disk was reported.
func linesOf(err error, full *bool) (lines []string) {
	whole, joined := err.Error(), joinedIn(err)
	before, after, found := "", "", false
	if joined != nil {
		before, after, found = strings.Cut(whole, joined.Error())
	}
	if !found {
		if errors.Is(err, syscall.ENOSPC) {
			if *full {
				return nil
			}
			*full = true
		}
		return []string{phrase.OneLine(whole)}
	}
	for _, part := range joined.(interface{ Unwrap() []error }).Unwrap() {
		for _, line := range linesOf(part, full) {
			line = phrase.OneLine(before + line + after)
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// joinedIn returns the outermost error in err made by errors.Join; nil if there is none.
func joinedIn(err error) error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return joinedIn(inner)
		}
	case interface{ Unwrap() []error }:
		if parts := e.Unwrap(); len(parts) > 1 && err.Error() == errors.Join(parts...).Error() {
			return err
		}
		for _, inner := range e.Unwrap() {
			if joined := joinedIn(inner); joined != nil {
				return joined
			}
		}
	}
	return nil
}

// exitCode returns the code for an error. Every error that is not an environment error is a usage error.
func exitCode(err error) int {
	if errors.Is(err, server.ErrEnvironment) || errors.Is(err, database.ErrEnvironment) || errors.Is(err, campaign.ErrUnwritable) || errors.As(err, new(environment)) {
		return reports.ExitEnvironment
	}
	return reports.ExitUsage
}

// environment marks an environment error.
type environment struct{ error }

func (e environment) Unwrap() error { return e.error }
