package claims

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oversell/campaign"
	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/server"
)

// planned returns a plan of some claims that writes to a temporary directory.
func planned(t *testing.T, o Options) Plan {
	t.Helper()
	o.Dir = t.TempDir()
	p, err := NewPlan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAllClaimsAreThere(t *testing.T) {
	answers := []string{reports.Confirmed, reports.Refuted, reports.Depends}
	for i, c := range All {
		if c.Number != fmt.Sprintf("C%d", i+1) {
			t.Errorf("claim %d is called %s", i+1, c.Number)
		}
		if !slices.Contains(answers, c.Declared) {
			t.Errorf("%s: declared as %q", c.Number, c.Declared)
		}
		if c.Words == "" || c.From == "" || c.Method == "" || c.measure == nil {
			t.Errorf("%s is incomplete: %+v", c.Number, c)
		}
	}
	if len(All) != 26 {
		t.Errorf("%d claims; the documents' table has 26", len(All))
	}
}

// TestThePageHasTheDeclaredAnswers checks docs/claims.md, which "oversell claims --markdown docs/claims.md" writes
// from a full run whose answers were the declared ones.
func TestThePageHasTheDeclaredAnswers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "claims.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, c := range All {
		for _, want := range []string{
			fmt.Sprintf("| [%s](#%s) | %s | %s | %s |\n", c.Number, strings.ToLower(c.Number), c.Words, c.From, c.Declared),
			fmt.Sprintf("\n## %s\n\n> %s\n\n**%s** (", c.Number, c.Words, c.Declared),
			c.Method,
			"\noversell claims " + c.Number + "\n",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("docs/claims.md does not have %q: write it again with oversell claims --markdown docs/claims.md", want)
			}
		}
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{"declared:", "--quick", "inconclusive", os.TempDir() + "/", "/home/", root} {
		if strings.Contains(page, foreign) {
			t.Errorf("docs/claims.md has %q", foreign)
		}
	}
}

func TestNumbers(t *testing.T) {
	p := planned(t, Options{Numbers: []string{"C14", "c2", "14", "C2"}})
	var got []string
	for _, c := range p.claims {
		got = append(got, c.Number)
	}
	if !slices.Equal(got, []string{"C2", "C14"}) {
		t.Errorf("C14, c2, 14 and C2 are %v", got)
	}
	for _, bad := range []string{"C0", "C27", "14a", "", "-1"} {
		if _, err := NewPlan(t.Context(), Options{Numbers: []string{bad}}); err == nil || !strings.Contains(err.Error(), "C1 to C26") {
			t.Errorf("claim %q: %v", bad, err)
		}
	}
	if _, err := NewPlan(t.Context(), Options{Target: server.Spec{Target: "embedded"}}); err == nil || !strings.Contains(err.Error(), "emulation") {
		t.Errorf("claims about the emulation: %v", err)
	}
}

// TestPersistentConnections checks that C26, which is about phpredis, is refuted where there is PHP, and inconclusive
// where there is none.
func TestPersistentConnections(t *testing.T) {
	servertest.NeedServer(t)
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	measured := func() reports.Claim {
		all, err := Run(t.Context(), planned(t, Options{Quick: true, Numbers: []string{"C26"}}), func(reports.Claim) {})
		if err != nil || len(all.Claims) != 1 {
			t.Fatal(all.Claims, err)
		}
		return all.Claims[0]
	}
	if _, err := exec.LookPath("php"); err == nil || os.Getenv("OVERSELL_REQUIRE_ALL") == "1" {
		if c := measured(); c.Answer != reports.Refuted || !strings.Contains(c.Sentence, "phpredis") {
			t.Errorf("with PHP: %s: %s (%s)", c.Answer, c.Sentence, c.NotMeasured)
		}
	}
	bin := t.TempDir()
	if err := os.Symlink(redis, filepath.Join(bin, "redis-server")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	if c := measured(); c.Answer != reports.Inconclusive || !strings.Contains(c.NotMeasured, "there is no php") || c.Sentence == "" {
		t.Errorf("without PHP: %s: %s (%s)", c.Answer, c.Sentence, c.NotMeasured)
	}
}

// TestMeasured measures some claims that take little time on a real server.
func TestMeasured(t *testing.T) {
	servertest.NeedServer(t)
	p := planned(t, Options{Quick: true, Numbers: []string{"C7", "C13", "C15", "C23", "C24", "C25", "C26"}})
	told := 0
	all, err := Run(t.Context(), p, func(reports.Claim) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	if told != len(p.claims) || len(all.Claims) != told || all.Interrupted || len(all.ServerVersions) == 0 {
		t.Errorf("%d claims were planned, %d told, %d reported; interrupted: %v, versions %v", len(p.claims), told, len(all.Claims), all.Interrupted, all.ServerVersions)
	}
	for i, c := range all.Claims {
		if c.Number != p.claims[i].Number {
			t.Errorf("claim %d is %s; want %s", i, c.Number, p.claims[i].Number)
		}
		noisy := p.claims[i].alone && c.Answer == reports.Inconclusive // such a claim compares times, which a busy machine can blur
		if !c.AsDeclared() && !noisy {
			t.Errorf("%s: %s, declared as %s: %s %+v", c.Number, c.Answer, c.Declared, c.Sentence, c.Numbers)
		}
		if len(c.Numbers) == 0 || len(c.Repeat) == 0 || c.ServerVersion == "" || !strings.HasSuffix(c.Sentence, ".") {
			t.Errorf("%s is told incompletely: %+v", c.Number, c)
		}
	}
}

func TestEarlierHistoriesAreKept(t *testing.T) {
	p := planned(t, Options{Numbers: []string{"C1", "C24"}})
	if err := os.Mkdir(filepath.Join(p.Dir, "C1"), 0o755); err != nil {
		t.Fatal(err)
	}
	all, err := Run(t.Context(), p, func(reports.Claim) {})
	if !errors.Is(err, campaign.ErrUsed) || len(all.Claims) > 0 {
		t.Errorf("%v, %+v", err, all.Claims)
	}
}

// TestFailures checks that a claim whose measurement fails is inconclusive and does not stop the others, and that a
// missing server is an error.
func TestFailures(t *testing.T) {
	p := planned(t, Options{})
	p.claims = []Claim{
		{Number: "C1", Declared: reports.Confirmed, measure: func(context.Context, *bench) (answer, error) {
			return answer{}, fmt.Errorf("something\nodd")
		}},
		{Number: "C2", Declared: reports.Confirmed, alone: true, measure: func(context.Context, *bench) (answer, error) {
			return answer{is: reports.Confirmed, says: "It is."}, nil
		}},
		{Number: "C3", Declared: reports.Inconclusive, measure: func(context.Context, *bench) (answer, error) {
			return answer{is: reports.Refuted, says: "As everybody knows.", numbers: []reports.Quantity{{Name: "found", Value: 3, Unit: "of 4"}}}, nil
		}},
	}
	all, err := Run(t.Context(), p, func(reports.Claim) {})
	// When an answer is not the declared one, its sentence may be wrong, so only its numbers are reported.
	if got := all.Claims[len(all.Claims)-1].Sentence; got != "found: 3 of 4." {
		t.Errorf("an unexpected answer is told as %q", got)
	}
	all.Claims = all.Claims[:len(all.Claims)-1]
	if err != nil || len(all.Claims) != 2 || all.Claims[0].Answer != reports.Inconclusive || all.Claims[1].Answer != reports.Confirmed {
		t.Errorf("%v, %+v", err, all.Claims)
	}
	if code := all.ExitCode(); code != reports.ExitInconclusive {
		t.Errorf("exit %d; want %d", code, reports.ExitInconclusive)
	}
	p = planned(t, Options{Target: server.Spec{Target: "redis://127.0.0.1:1"}, Numbers: []string{"C24", "C25"}})
	if all, err := Run(t.Context(), p, func(reports.Claim) {}); err == nil || len(all.Claims) > 0 {
		t.Errorf("no server: %v, %+v", err, all.Claims)
	}
}

// TestInterrupted checks that, when the context ends, finished answers are reported and a half-finished one is not.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := planned(t, Options{})
	p.claims = []Claim{
		{Number: "C1", Declared: reports.Confirmed, measure: func(context.Context, *bench) (answer, error) {
			return answer{is: reports.Confirmed, says: "It is."}, nil
		}},
		{Number: "C2", Declared: reports.Confirmed, alone: true, measure: func(ctx context.Context, _ *bench) (answer, error) {
			cancel()
			<-ctx.Done()
			return answer{}, ctx.Err()
		}},
		{Number: "C3", Declared: reports.Confirmed, alone: true, measure: func(context.Context, *bench) (answer, error) {
			t.Error("measured after the end")
			return answer{}, nil
		}},
	}
	all, err := Run(ctx, p, func(reports.Claim) {})
	if err != nil || len(all.Claims) != 1 || all.Claims[0].Number != "C1" || !all.Interrupted {
		t.Errorf("%v, %+v", err, all)
	}
	if code := all.ExitCode(); code != reports.ExitInconclusive {
		t.Errorf("exit %d; want %d", code, reports.ExitInconclusive)
	}
}
