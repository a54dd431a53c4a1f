package adapters

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/internal/phrase"
	"oversell/internal/servertest"
	"oversell/reports"
)

// searched lists the locks that are not only run but also searched, with the flags of explore.
var searched = []struct{ peer, flags, want, note string }{
	{"redis-py Lock", "--tries 1 --time 5m", reports.Pass, ""},
	{"symfony/lock, RedisStore", "--tries 1 --time 5m", reports.Violated,
		"`acquire()` takes the lock for `initialTtl`, 300 s, and shortens that by a second command, before which the client dies"},
	{"Laravel cache lock", "--tries 1 --late 0 --time 5m", reports.Pass, ""},
}

// TestSearched checks that searches of locks of libraries in other languages have the results that docs/peers.md says. By
// default it leaves out the proofs; with OVERSELL_PEERS=1 it searches all locks and writes that part of the document.
func TestSearched(t *testing.T) {
	t.Setenv("PATH", "/usr/bin:"+os.Getenv("PATH")) // use Debian's packages of the libraries
	if _, err := exec.LookPath("cc"); err != nil {
		servertest.Unable(t, err)
	}
	var rows strings.Builder
	for _, s := range searched {
		if os.Getenv("OVERSELL_PEERS") != "1" && s.want != reports.Violated {
			continue // a proof takes longer
		}
		p := peers[slices.IndexFunc(peers, func(p peer) bool { return p.name == s.peer })]
		p.installed(t)
		command := "oversell explore --system adapters/" + p.system + " " + s.flags
		e := search(t, p.system, s.flags)
		if e.Verdict != s.want {
			t.Errorf("%s: %s (%s); want %s", command, e.Verdict, e.Why, s.want)
		}
		result := "holds"
		if x := e.Counterexample; x != nil {
			result = fmt.Sprintf("%s breaks in %s: %s", x.Property, phrase.Count(len(x.Steps), "step"), s.note)
		}
		fmt.Fprintf(&rows, "| %s (%s) | %s | %s | `%s` |\n", p.name, p.language, result, phrase.Count(int64(e.Stats.States), "state"), command)
	}
	if os.Getenv("OVERSELL_PEERS") != "1" || t.Failed() {
		return
	}
	path := filepath.Join("..", "docs", "peers.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	section := "## Searched\n\nEvery interleaving of two clients within the bounds of `explore` ([explore.md](explore.md)), with the library's own code in its own language\n([systems.md](systems.md)). Promises: mutual-exclusion, owner-only-release, progress.\n\n| library | result | searched | command |\n|---|---|---|---|\n" + rows.String() + "\n"
	whole := regexp.MustCompile(`(?s)## Searched\n.*?\n## `).ReplaceAllLiteralString(string(text), "## ")
	whole = strings.Replace(whole, "## What their documentation says\n", section+"## What their documentation says\n", 1)
	if err := os.WriteFile(path, []byte(whole), 0o644); err != nil {
		t.Fatal(err)
	}
}

func search(t *testing.T, system, flags string) (found reports.Exploration) {
	t.Helper()
	o := campaign.SearchOptions{}
	f := pflag.NewFlagSet("explore", pflag.ContinueOnError)
	o.BindSearch(f)
	if err := f.Parse(append([]string{"--system", system}, strings.Fields(flags)...)); err != nil {
		t.Fatal(err)
	}
	cs, _, err := campaign.Searches(o)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := campaign.Explore(t.Context(), cs, func(e reports.Exploration) { found = e }); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s: %s after %v", system, flags, found.Verdict, time.Since(began))
	return found
}
