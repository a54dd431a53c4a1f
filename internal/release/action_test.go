package release

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/joshdk/go-junit"
	"github.com/rhysd/actionlint"
)

// action is the part of action.yml that a runner reads.
type action struct {
	Inputs  map[string]struct{ Default string }
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []step
	}
}

type step struct {
	ID, If, Uses, Shell, Run, Name string
	Env, With                      map[string]string
}

// runner carries out the steps of an action as a runner of GitHub does, except steps that use other actions.
type runner struct {
	t         *testing.T
	action    action
	workspace string
	temp      string
	contexts  map[string]string // values of expressions in ${{ }}
	path      string
	used      []string // actions that a real runner would have used
	out       string   // the output of the steps
	summary   string   // the path of the summary
	failed    bool
}

func newRunner(t *testing.T, with map[string]string, server string) *runner {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{t: t, workspace: t.TempDir(), temp: t.TempDir(), path: os.Getenv("PATH")}
	if err := yaml.Unmarshal(text, &r.action); err != nil {
		t.Fatal(err)
	}
	r.contexts = map[string]string{
		"github.action_path": path, "github.action_ref": version, "github.action_repository": "acme/oversell",
		"github.server_url": server, "runner.temp": r.temp,
	}
	for name, input := range r.action.Inputs {
		r.contexts["inputs."+name] = input.Default
	}
	for name, value := range with {
		if _, known := r.action.Inputs[name]; !known {
			t.Fatalf("the action has no input %q", name)
		}
		r.contexts["inputs."+name] = value
	}
	r.summary = filepath.Join(r.temp, "summary.md")
	return r
}

var expression = regexp.MustCompile(`\$\{\{ *(.*?) *\}\}`)

// value returns a text with its expressions evaluated.
func (r *runner) value(text string) string {
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		name := expression.FindStringSubmatch(e)[1]
		value, known := r.contexts[name]
		if !known {
			r.t.Fatalf("%s: not a value that a runner knows", e)
		}
		return value
	})
}

// due reports whether a step is run.
func (r *runner) due(condition string) bool {
	switch name, isEmpty := strings.CutSuffix(condition, " == ''"); {
	case condition == "":
		return !r.failed
	case condition == "always()":
		return true
	case isEmpty:
		return !r.failed && r.value("${{ "+name+" }}") == ""
	}
	r.t.Fatalf("the condition %q is not understood here", condition)
	return false
}

// run carries out all steps.
func (r *runner) run() {
	r.t.Helper()
	for i, s := range r.action.Runs.Steps {
		if !r.due(s.If) {
			continue
		}
		for name, value := range s.With {
			s.With[name] = r.value(value)
		}
		if s.Uses != "" {
			r.used = append(r.used, s.Uses)
			if s.With["repository"] != "" {
				r.checkout(s.With["path"])
			}
			continue
		}
		r.shell(i, s)
	}
}

// checkout puts a copy of this repository where the action would check it out.
func (r *runner) checkout(path string) {
	r.t.Helper()
	from, err := filepath.Abs(root)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(from, filepath.Join(r.workspace, path)); err != nil {
		r.t.Fatal(err)
	}
}

// shell runs a step with bash as a runner does, and reads the files that the step leaves.
func (r *runner) shell(i int, s step) {
	r.t.Helper()
	if s.Shell != "bash" || strings.Contains(s.Run, "${{") {
		r.t.Errorf("step %q: its shell is %q, and expressions belong into env, where they cannot become code", s.Name, s.Shell)
	}
	file := func(name, content string) string {
		path := filepath.Join(r.temp, fmt.Sprintf("%d-%s", i, name))
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			r.t.Fatal(err)
		}
		return path
	}
	output, paths := file("output", ""), file("path", "")
	cmd := exec.CommandContext(r.t.Context(), "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", file("step.sh", s.Run))
	cmd.Dir = r.workspace
	cmd.Env = environment("GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+r.workspace, "RUNNER_TEMP="+r.temp, "GITHUB_OUTPUT="+output,
		"GITHUB_PATH="+paths, "GITHUB_STEP_SUMMARY="+r.summary, "PATH="+r.path)
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+r.value(value))
	}
	out, err := cmd.CombinedOutput()
	r.out += string(out)
	if err != nil {
		r.failed = true
		r.out += "\nstep " + s.Name + ": " + err.Error() + "\n"
	}
	for _, line := range lines(r.t, paths) {
		r.path = line + ":" + r.path
	}
	for _, line := range lines(r.t, output) {
		name, value, _ := strings.Cut(line, "=")
		r.contexts["steps."+s.ID+".outputs."+name] = value
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[:strings.Count(string(text), "\n")]
}

func (r *runner) output(name string) string { return r.value(r.action.Outputs[name].Value) }

// plan is a gate with one entry, which runs on the emulation.
const plan = `safety:
  - name: never oversold
    expect: pass
    repeat: 1
    run: {target: embedded, lock: %s, sale: plain, clients: 16, stock: 600}
`

func (r *runner) plan(lock string) {
	if err := os.WriteFile(filepath.Join(r.workspace, "gate.yaml"), fmt.Appendf(nil, plan, lock), 0o666); err != nil {
		r.t.Fatal(err)
	}
}

// gated checks the exit code, the summary and the files that a gate has left.
func (r *runner) gated(code, summary string) {
	r.t.Helper()
	if got := r.output("exit-code"); got != code || r.failed != (code != "0") {
		r.t.Fatalf("exit code %q, want %s; failed: %v\n%s", got, code, r.failed, r.out)
	}
	text, err := os.ReadFile(r.summary)
	if err != nil || !strings.Contains(string(text), summary) {
		r.t.Errorf("the summary of the step: %v\n%s", err, text)
	}
	suites, err := junit.IngestFile(filepath.Join(r.workspace, r.output("junit")))
	if err != nil || len(suites) == 0 {
		r.t.Fatalf("JUnit: %v, %d suites", err, len(suites))
	}
	failed := 0
	for _, s := range suites {
		failed += s.Totals.Failed
	}
	if failed > 0 != (code == "1") {
		r.t.Errorf("%d failures in the JUnit file of a gate with the exit code %s", failed, code)
	}
	if last := r.used[len(r.used)-1]; !strings.HasPrefix(last, "actions/upload-artifact@") {
		r.t.Errorf("what was found is not kept: the last action used is %s", last)
	}
}

// TestAction checks that the action builds oversell and is green, and that it also leaves the exit code, the JUnit file
// and the summary when it is red.
func TestAction(t *testing.T) {
	r := newRunner(t, nil, "")
	r.plan("lua-release")
	r.run()
	r.gated("0", "oversell gate: GREEN")
	if !strings.HasPrefix(r.used[0], "actions/setup-go@") || !strings.Contains(r.out, "oversell "+version+" (") {
		t.Errorf("it used %q and printed\n%s", r.used, r.out)
	}

	red := newRunner(t, map[string]string{"junit": "red.xml", "arguments": "--seed 1 --annotations", "install-redis": "false"}, "")
	red.plan("none")
	red.run()
	red.gated("1", "oversell gate: RED")
	if !strings.Contains(red.out, "::error ") {
		t.Errorf("no annotation:\n%s", red.out)
	}

	// The same with a released program: the one that was built above, and a forged one.
	program := filepath.Join(r.temp, "oversell-bin", "oversell")
	name := "oversell-" + runtime.GOOS + "-" + runtime.GOARCH
	sum := strings.Fields(did(t, r.temp, "sha256sum", program))[0]
	for sum, wanted := range map[string]bool{sum: true, strings.Repeat("0", len(sum)): false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			switch q.URL.Path {
			case "/acme/oversell/releases/download/v9/" + name:
				http.ServeFile(w, q, program)
			case "/acme/oversell/releases/download/v9/SHA256SUMS":
				fmt.Fprintf(w, "%s  %s\n%s  oversell-plan9-amd64\n", sum, name, sum)
			default:
				http.NotFound(w, q)
			}
		}))
		r := newRunner(t, map[string]string{"version": "v9"}, server.URL)
		r.plan("lua-release")
		r.run()
		server.Close()
		if wanted {
			r.gated("0", "oversell gate: GREEN")
		} else if !r.failed || strings.Contains(r.out, "(commit") {
			t.Errorf("a program with another checksum was run:\n%s", r.out)
		}
	}
}

// TestWorkflow checks that the workflow in docs/install.md has five lines, is valid for GitHub, and passes only inputs
// that the action knows.
func TestWorkflow(t *testing.T) {
	workflow := code(t, "docs/install.md", "In a workflow")[0]
	if n := strings.Count(workflow, "\n"); n != 5 {
		t.Errorf("it has %d lines:\n%s", n, workflow)
	}
	project := t.TempDir()
	did(t, project, "git", "init", "--quiet")
	text, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	local := strings.Replace(workflow, "acme/oversell@v1", "./", 1)
	files := map[string]string{
		"action.yml":                  string(text),
		".github/workflows/ours.yml":  local,
		".github/workflows/wrong.yml": strings.Replace(local, "uses: ./", "uses: ./, with: {plane: x}", 1),
	}
	for name, content := range files {
		path := filepath.Join(project, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{WorkingDir: project})
	if err != nil {
		t.Fatal(err)
	}
	for file, wrong := range map[string]bool{"ours.yml": false, "wrong.yml": true} {
		found, err := l.LintFile(filepath.Join(project, ".github", "workflows", file), nil)
		if err != nil || (len(found) > 0) != wrong {
			t.Errorf("%s: %v, %v", file, err, found)
		}
	}
}

// TestExampleWorkflow copies examples/gate/oversell.yml into an empty directory with a plan, and checks that its steps
// build oversell and carry out the gate.
func TestExampleWorkflow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "examples", "gate", "oversell.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for lock, want := range map[string]string{"lua-release": "oversell gate: GREEN", "none": "oversell gate: RED"} {
		r := newRunner(t, nil, "")
		copied := filepath.Join(r.workspace, ".github", "workflows", "oversell.yml")
		if err := os.MkdirAll(filepath.Dir(copied), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, text, 0o666); err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			Jobs map[string]struct{ Steps []step }
		}
		if err := yaml.Unmarshal(text, &workflow); err != nil {
			t.Fatal(err)
		}
		r.action.Runs.Steps = workflow.Jobs["gate"].Steps
		r.plan(lock)
		r.run()
		summary, err := os.ReadFile(r.summary)
		if err != nil || !strings.Contains(string(summary), want) || r.failed != (lock == "none") {
			t.Errorf("%s: failed %v, %v, want %s:\n%s\n%s", lock, r.failed, err, want, summary, r.out)
		}
		kept := r.action.Runs.Steps[len(r.action.Runs.Steps)-1]
		if !strings.HasPrefix(kept.Uses, "actions/upload-artifact@") {
			t.Errorf("the last step is %q", kept.Uses)
		}
		for _, path := range strings.Fields(kept.With["path"]) {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: what is to be kept is not there: %v", lock, err)
			}
		}
	}
}
