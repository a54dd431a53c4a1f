//go:build unix

package adapters

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"oversell/reports"
)

// told is docs/peers.md.
func told(all []outcome, times int) string {
	var b strings.Builder
	count := map[string]int{}
	names := map[string]bool{}
	for _, o := range all {
		count[o.word()]++
		names[o.peer.name] = true
	}
	server, _ := exec.Command("redis-server", "--version").Output()
	fmt.Fprintf(&b, "# What locks and queues of published libraries do\n\n")
	fmt.Fprintf(&b, "%d configurations of libraries in Go, Python, PHP and Ruby, %d cases, each tried %d times: %d hold, %d break as their\ndocumentation says, %d break although it says otherwise, %d break where it is silent, %d were not decided. Made by\n`OVERSELL_PEERS=1 go test -timeout 2h -run TestPeers ./adapters`, on %s.\n\n",
		len(names), len(all), times, count[holds], count[asDocumented], count[otherwise], count[undocumented], count[undecided], strings.Join(strings.Fields(string(server))[:3], " "))
	b.WriteString(explained)
	table(&b, all, "lock")
	table(&b, all, "queue")
	documentation(&b, all)
	details(&b, all)
	return b.String()
}

const explained = `The libraries run unaltered, as [adapters](../adapters) uses them: through the calls that their documentation shows; their Redis
clients wait two seconds for an answer and do not send a command again. A lock is
judged by mutual-exclusion within the lease that the library granted, owner-only-release and progress; in an overrun also the sale under it,
by the promises of a sale ([properties.md](properties.md)). A queue is judged by no-lost-task: what was enqueued is done, or the library still
knows of it.

| case | what happens |
|---|---|
| load | eight clients want one lock; three workers do sixty tasks |
| overrun | holders stay for 1.2 s under a lease of 1 s |
| crash | a process dies as of kill -9 right after a grant, at its tenth; a worker dies in the midst of every tenth task, once, and is started again |
| lost replies | the server executes a command, and the connection is closed before the answer: one command in 200 |
| data loss | the server restarts without its data every 0.7 s while a lock is held, of three masters the first: what a failover to a replica that lacks the lock amounts to |

A case that holds was not seen to break in these runs; that is no proof. Where a search was made, [explore.md](explore.md) has its bounds:
bsm/redislock and redsync hold in every interleaving of two clients with two tries. The versions are those of Debian 12 and of ` + "`go.mod`" + `; newer ones
may differ. Not tried: rueidislock (its module could not be had), Huey (no Debian package), workers of Celery that
die (whether a task is lost depends on when its early acknowledgement is sent, and the trial did not come to an end), and failovers of a replicated group, which the
libraries meet through the Redis client that they are given.

`

func table(b *strings.Builder, all []outcome, kind string) {
	fmt.Fprintf(b, "## %s\n\n| library | version | case | result | runs | promises that broke |\n|---|---|---|---|---|---|\n", map[string]string{"lock": "Locks", "queue": "Queues"}[kind])
	for _, o := range all {
		if o.peer.kind == kind {
			fmt.Fprintf(b, "| %s (%s) | %s | %s | %s | %s | %s |\n", o.peer.name, o.peer.language, o.version, o.hardship, o.word(), runs(o.verdicts), strings.Join(o.broke, ", "))
		}
	}
	b.WriteString("\n")
}

// runs counts verdicts: "pass 3".
func runs(verdicts []string) string {
	var parts []string
	for _, v := range []string{reports.Pass, reports.Violated, reports.Inconclusive} {
		n := 0
		for _, got := range verdicts {
			if got == v {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d/%d", v, n, len(verdicts)))
		}
	}
	return strings.Join(parts, ", ")
}

// documentation is what the libraries' own texts say.
func documentation(b *strings.Builder, all []outcome) {
	b.WriteString("## What their documentation says\n\n| library | promise | where it ends |\n|---|---|---|\n")
	var had []string
	for _, o := range all {
		if slices.Contains(had, o.peer.name) {
			continue
		}
		had = append(had, o.peer.name)
		var warns []string
		for _, h := range hardships {
			if w := o.peer.warns[h.name]; w != "" {
				warns = append(warns, h.name+": "+w)
			}
		}
		fmt.Fprintf(b, "| %s | [%s](%s) | %s |\n", o.peer.name, o.peer.promise, o.peer.link, strings.Join(warns, "; "))
	}
	b.WriteString("\n")
}

// details are the witnesses and the commands.
func details(b *strings.Builder, all []outcome) {
	b.WriteString("## Witnesses and commands\n\nBuild the programs in Go first: `go build -o adapters/golang/golang ./adapters/golang`.\n")
	for _, o := range all {
		fmt.Fprintf(b, "\n**%s, %s: %s.** `%s`\n", o.peer.name, o.hardship, o.word(), o.command)
		if o.why != "" {
			fmt.Fprintf(b, "The first witness: %s\n", strings.TrimSuffix(o.why, ".")+".")
		}
	}
}
