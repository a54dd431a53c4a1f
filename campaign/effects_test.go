package campaign_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/compare"
	"oversell/internal/limits"
)

// TestFlagsWithoutEffectAreRefused checks that run, compare and explore all refuse a flag that would have no effect.
func TestFlagsWithoutEffectAreRefused(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"run --lock lua-release --target process --image redis:7", "leave out --image: "},
		{"run --lock lua-release --image redis:7", "leave out --image: "},
		{"run --lock lua-release --target container --image redis:7", ""},
		{"run --sale lua --lock none --sql sqlite", "leave out --sql: "},
		{"run --sale sql-plain --lock none --sql sqlite", ""},
		{"run --scenario dispatch --sql sqlite", ""},
		{"run --sale lua --lock none --ttl 1s", "leave out --ttl: in scenario seckill, lock none, sale lua no lock is taken, so nothing has a lease"},
		{"run --sale lua --lock none --wait 1s", "leave out --wait: "},
		{"run --sale lua --lock none --retry 1s", "leave out --retry: "},
		{"run --sale lua --lock none --waiting pubsub", "leave out --waiting: "},
		{"run --lock lua-release --wait 0 --retry 1s", "leave out --retry: "},
		{"run --lock none,lua-release --ttl 1s", ""},
		{"run --lock lua-release --refund 0.1", ""},
		{"run --scenario mutex --refund 0.1", "leave out --refund: "},
		{"run --scenario seckill-queued --queue zset-atomic --refund 0.1", "leave out --refund: "},
		{"run --scenario seckill-queued --queue zset-atomic --quantity 3", "leave out --quantity: "},
		{"run --scenario seckill-queued --queue zset-atomic --sale lua --stock 3", ""},
		{"run --scenario queue --hold 1ms", "leave out --hold: "},
		{"run --scenario ids --lock none --ids incr --hold 1ms", "leave out --hold: "},
		{"run --scenario mutex --hold 1ms", ""},
		{"run --scenario mutex --delay 1s", "leave out --delay: "},
		{"run --scenario queue --queue streams --ttl 1s", "leave out --ttl: "},
		{"run --scenario queue --overwrite", ""}, // by default some ids are enqueued again
		{"run --scenario queue --overwrite --repeat 0", "leave out --overwrite: "},
		{"run --scenario queue --overwrite --repeat 0.5", ""},
		{"run --scenario mutex --die 0.5", "leave out --die: "},
		{"run --scenario mutex --ids incr", "leave out --ids: "},
		{"compare --sale lua --lock none --ttl 1s,2s", "leave out --ttl: "},
		{"compare --sale lua --ttl 1s,2s", ""},
		{"compare --quick --image redis:7", "leave out --image: "},
		{"compare --quick --target container,process --image redis:7", ""},
		{"explore --lock lua-release --stock 3", "leave out --stock: "},
		{"explore --lock lua-release --resends 1", "leave out --resends: "},
		{"explore --lock lua-release --masters 3", "leave out --masters: "},
		{"explore --lock redlock --masters 3", ""},
		{"explore --lock lua-release --sale plain --hold 1s", "leave out --hold: "},
		{"explore --sale lua --lock none --ttl 1s", "leave out --ttl: "},
		{"explore --lock lua-release --visibility 1s", "leave out --visibility: "},
	} {
		err := planFor(t, strings.Fields(c.command))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.command, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s says %v; want %q", c.command, err, c.want)
		}
	}
}

// TestValuesThatMatterInPart checks that a value of which only a part has an effect gets a note.
func TestValuesThatMatterInPart(t *testing.T) {
	for command, want := range map[string]string{
		"--lock lua-release --clients 2 --pool 100":            "--pool 100: 2 clients use no more than 2 connections at once",
		"--lock lua-release --clients 2 --pool 4 --resend 0.5": "",
		"--lock lua-release --retry 20s":                       "--retry 20s is longer than --wait 10s: clients look again when the wait is over",
		"--lock lua-release --stock 5 --quantity 9":            "--quantity 9 is more than --stock 5: larger orders are always refused",
		"--lock lua-release --clients 16 --pool 4":             "",
	} {
		o, err := campaign.Parse(strings.Fields(command))
		if err != nil {
			t.Fatal(err)
		}
		p, err := campaign.NewPlan(t.Context(), *o)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Notes, "\n"); got != want {
			t.Errorf("%s notes %q; want %q", command, got, want)
		}
	}
}

// TestOpenLoadFlags checks that a mistake in the flags of an open load is reported in one line.
func TestOpenLoadFlags(t *testing.T) {
	for command, want := range map[string]string{
		"run --lock none --sale lua --rate 2k":                   "",
		"run --lock none --sale lua --stages 0:1,1s:20":          "",
		"run --lock none --sale lua --rate 2k --arrival poisson": "",
		"run --scenario queue --rate 500":                        "",
		"run --scenario dispatch --rate 50":                      "",
		"run --lock none --sale lua --rate fast":                 "--rate fast: must be arrivals a second like 500, 20k or 2.5/s",
		"run --lock none --sale lua --rate 0":                    "--rate 0: must be arrivals a second",
		"run --lock none --sale lua --stages 1k":                 `--stages 1k: "1k": must be stages like 0:1k,30s:20k`,
		"run --lock none --sale lua --rate 1 --stages 0:1":       "give --rate or --stages",
		"run --lock none --sale lua --arrival poisson":           "leave out --arrival: in scenario seckill, lock none, sale lua the load is closed",
		"run --lock none --sale lua --rate 1 --arrival even":     "--arrival even: must be constant or poisson",
		"run --lock none --sale lua --rate 0.1 --duration 1s":    "at --rate 0.1 fewer than one arrival is due in 1s",
		"run --lock none --sale lua --rate 0.001":                "at --rate 0.001 the arrivals of this run take",
		"compare --sale lua --rate 1k":                           "unknown flag: --rate",
	} {
		err := limits.Explain(planFor(t, strings.Fields(command)))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", command, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s says %v; want %q", command, err, want)
		}
	}
}

// planFor makes the plan of a command line without starting anything, and returns the error.
func planFor(t testing.TB, words []string) error {
	t.Helper()
	f := pflag.NewFlagSet(words[0], pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	switch words[0] {
	case "compare":
		o := compare.Options{Dir: "unused"}
		o.Bind(f)
		f.String("out", "", "")
		f.Bool("json", false, "")
		f.String("metrics", "", "")
		if err := f.Parse(words[1:]); err != nil {
			return err
		}
		_, err := compare.New(t.Context(), &o)
		return err
	case "explore":
		o := campaign.SearchOptions{}
		o.BindSearch(f)
		f.String("out", "", "")
		f.Bool("json", false, "")
		f.String("emit-test", "", "")
		if err := f.Parse(words[1:]); err != nil {
			return err
		}
		_, _, err := campaign.Searches(o)
		return err
	}
	o := campaign.Options{}
	o.Bind(f)
	f.Bool("stop-on-violation", false, "")
	f.String("out", "", "")
	f.Bool("json", false, "")
	f.String("metrics", "", "")
	if err := f.Parse(words[1:]); err != nil {
		return err
	}
	_, err := campaign.NewPlan(t.Context(), o)
	return err
}

// TestCommandsOfTheDocumentsAreAccepted checks that no command in the documents or in the table of failures is
// refused.
func TestCommandsOfTheDocumentsAreAccepted(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range campaign.Failures {
		for _, c := range f.Cells {
			if err := planFor(t, append([]string{"run"}, c.Args...)); err != nil {
				t.Errorf("%s: %q: %v", f.Mode, c.Args, err)
			}
		}
	}
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(files, "../README.md", "../docker-compose.yml", "../cmd/oversell/run.go", "../cmd/oversell/compare.go", "../cmd/oversell/explore.go") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range documented.FindAllString(string(text), -1) {
			words, ok := splitLine(m)
			_, fault, faulty := strings.Cut(m, "--fault")
			prose := faulty && !strings.HasPrefix(fault, " '") || strings.Contains(m, "…") || strings.Contains(m, "--replay")
			if seen[m] || !ok || prose {
				continue
			}
			seen[m] = true
			for i := range words {
				words[i] = fromHere(words[i])
			}
			if err := planFor(t, words[1:]); err != nil {
				t.Errorf("%s: %s: %v", path, m, err)
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d commands were found", len(seen))
	}
}

// fromHere turns a path in a document, which is relative to the root, into one relative to this directory. A
// lock.yaml stands for the reader's own file.
func fromHere(word string) string {
	switch {
	case word == "lock.yaml":
		return "../examples/python/lock.yaml"
	case strings.HasPrefix(word, "examples/"), strings.HasPrefix(word, "adapters/"):
		return "../" + word
	}
	return word
}

// documented matches a command line in a document. It ends at the end of its line, at a comment, at three spaces or
// where code ends.
var documented = regexp.MustCompile("oversell (?:run|compare|explore)(?: '[^'\n]*'| --?[^ `|'\n]+| [a-zA-Z0-9][^ `|'\n]*)+")

// splitLine splits a line as a shell does, with single quotes only.
func splitLine(line string) (words []string, ok bool) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
		ok = i%2 == 0
	}
	return words, ok
}
