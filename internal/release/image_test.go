package release

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestImage checks that the program in the image, which contains no operating system, runs as any user, leaves its
// histories, and finds the files that TLS and time zones need.
func TestImage(t *testing.T) {
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil && os.Getenv("OVERSELL_REQUIRE_ALL") != "1" {
		t.Skipf("no Docker daemon answers: %s", out)
	}
	const image = "oversell-test:image"
	dir := copied(t)
	did(t, dir, "make", "docker", "DOCKER_IMAGE="+image)
	t.Cleanup(func() { _ = exec.Command("docker", "image", "rm", "--force", image).Run() })
	if said := did(t, dir, "docker", "run", "--rm", image, "version"); !strings.HasPrefix(said, "oversell "+version+" (commit "+commit) {
		t.Errorf("it says %q", said)
	}
	// Run as nobody, with a file system that is read-only except for /tmp and /work.
	did(t, dir, "docker", "run", "--rm", "--read-only", "--tmpfs=/tmp", "--tmpfs=/work:mode=1777", image, "run", "--lock=lua-release", "--clients=8", "--stock=40")

	work := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "docker", "run", "--rm", "--volume="+work+":/work", "--user=0:0", "--env=TZ=Asia/Shanghai", image,
		"run", "--lock=lua-release", "--clients=8", "--stock=40", "--json", "--out=run")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var d struct {
		Runs []struct{ Target, Verdict, Started string }
	}
	if err := json.Unmarshal(out, &d); err != nil || len(d.Runs) != 1 || d.Runs[0].Target != "embedded" || d.Runs[0].Verdict != "pass" {
		t.Errorf("%v: it printed %s", err, out)
	}
	if pages, err := filepath.Glob(filepath.Join(work, "run", "*", "report.html")); err != nil || len(pages) != 1 {
		t.Errorf("pages left outside: %v, %v", pages, err)
	}
	if roots, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt"); err == nil {
		container := strings.TrimSpace(did(t, dir, "docker", "create", image))
		t.Cleanup(func() { _ = exec.Command("docker", "rm", container).Run() })
		inside := did(t, dir, "docker", "cp", container+":/etc/ssl/certs/ca-certificates.crt", "-")
		if !strings.Contains(inside, string(roots)) {
			t.Error("the image does not have the roots for TLS of this machine")
		}
	}
}
