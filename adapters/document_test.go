//go:build unix

package adapters

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"oversell/reports"
)

// told returns the text of docs/peers.md.
func told(all, controls []outcome, times int) string {
	var b strings.Builder
	count := map[string]int{}
	names := map[string]bool{}
	for _, o := range all {
		count[o.word()]++
		names[o.peer.name] = true
	}
	server, _ := exec.Command("redis-server", "--version").Output()
	fmt.Fprintf(&b, "# What locks and queues of published libraries do\n\n")
	fmt.Fprintf(&b, "%d configurations of libraries in Go, Python, PHP and Ruby, %d cases, each tried %d times: %d hold, in %d the lock\nholds and the section outlives its lease, %d break as their documentation says, %d break although it says otherwise, %d break in a\nway that their documentation does not mention, %d were not decided. Made by\n`OVERSELL_PEERS=1 go test -timeout 2h -run '^Test(Peers|Searched)$' ./adapters`, on redis-server %s.\n\n",
		len(names), len(all), times, count[holds], count[outlived], count[asDocumented], count[otherwise], count[undocumented], count[undecided], strings.TrimPrefix(strings.Fields(string(server))[2], "v="))
	b.WriteString(explained)
	table(&b, all, "lock")
	table(&b, all, "queue")
	controlled(&b, controls)
	b.WriteString(searchedBefore())
	documentation(&b, all)
	details(&b, all)
	return b.String()
}

const explained = `The libraries run as they are. Each [adapter](../adapters) uses its library as its documentation shows; the last table lists where it does
not. The clients of the locks wait two seconds for an answer and do not send a command again (by default go-redis sends one up to three more
times); rueidislock has a client of its own. The queues run with the defaults of their clients. A lock is judged by mutual-exclusion within the lease that the
library granted, owner-only-release and progress ([properties.md](properties.md)). A queue is judged by no-lost-task: what was enqueued is
done, or the library still knows of it.

| case | what happens |
|---|---|
| load | eight clients want one lock; three workers do sixty tasks |
| overrun | holders stay for 1.2 s under a lease of 1 s, in a sale of 4 pieces that reads the stock and writes it |
| crash | the process exits right after its tenth grant, without a release (in Go and Python all eight clients are of one process, in PHP each has its own); a worker is killed (SIGKILL) 0.5 s into every tenth task, once, and started again |
| lost replies | the server executes a command, and the connection is closed before the answer: each command with a probability of 0.5 % |
| data loss | the server restarts without its data every 0.7 s, mostly while a lock is held (of three masters the first one); a failover to a replica that has not received the lock has the same effect |

In an overrun every library kept its promise: one holder within each lease. rueidislock renews its leases by itself. With the others the section
went on after its lease, because these runs do not extend the lease, although all of these libraries but Laravel offer a call to extend it. What protects the sale is a fencing token, or a check at the write.
No lock on a single Redis that forgets can hold under data loss, whatever the library; the result says only whether its documentation
warns of it.

A case that holds was not seen to break in these runs; that is no proof. "Opportunities" counts, in the last run, the chances to break of the promise
that had the fewest. Progress is judged after the last fault; replies are lost until the end, so it says little there; a lock that stays taken
after the last fault is still found, as with symfony/lock. bsm/redislock and redsync hold in every interleaving of two clients with two tries on one
master in which no message is lost or late and time advances once; progress is not judged there, and [explore.md](explore.md) has the bounds.
The versions are those of Debian 12 and of ` + "`go.mod`" + `; newer ones may differ. Not tried: Huey (no Debian package),
Sidekiq Pro, and failovers of a replicated group, which the libraries meet through the Redis client that they are given.

`

func table(b *strings.Builder, all []outcome, kind string) {
	fmt.Fprintf(b, "## %s\n\n| library | version | case | result | runs | %s | what broke |\n|---|---|---|---|---|---|---|\n",
		map[string]string{"lock": "Locks", "queue": "Queues"}[kind], map[string]string{"lock": "opportunities", "queue": "tasks"}[kind])
	for _, o := range all {
		if o.peer.kind != kind {
			continue
		}
		tried, broke := fmt.Sprint(o.asked), o.broke
		if kind == "queue" {
			tried = strings.Join(slices.Compact(slices.Clone(o.counts)), "; ")
		}
		if len(o.sale) > 0 {
			broke = append(slices.Clone(broke), "the sale's "+strings.Join(o.sale, ", "))
		}
		fmt.Fprintf(b, "| %s (%s) | %s | %s | %s | %s | %s | %s |\n", o.peer.name, o.peer.language, o.version, o.hardship, o.word(), runs(o.verdicts), tried, strings.Join(broke, ", "))
	}
	b.WriteString("\n")
}

// runs returns the number of runs by verdict, such as "pass 3".
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

// documentation writes the table of what the libraries' documentation says.
func documentation(b *strings.Builder, all []outcome) {
	b.WriteString("## What their documentation says\n\n| library | promise | where it ends | used here |\n|---|---|---|---|\n")
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
		if o.peer.ends != "" {
			warns = append(warns, o.peer.ends)
		}
		fmt.Fprintf(b, "| %s | [%s](%s) | %s | %s |\n", o.peer.name, o.peer.promise, o.peer.link, strings.Join(warns, "; "), o.peer.used)
	}
	b.WriteString("\n")
}

// details writes the witnesses and the commands.
func details(b *strings.Builder, all []outcome) {
	b.WriteString("## Witnesses and commands\n\nRun them in the root of the clone. Build the programs in Go first: `go build -o adapters/golang/golang ./adapters/golang`. The runs had\nthe seeds 1, 2 and so on; a command has that of its witness. The libraries in Python are Debian's: put `PATH=/usr/bin:$PATH` before a command if another\npython3 comes first. `oversell run` exits with 1 when a promise is broken. The `go test` commands exit with 0 whatever the result, and log it.\nA client that got no answer goes on under a new number.\n")
	for _, o := range all {
		fmt.Fprintf(b, "\n**%s, %s: %s.** `%s`\n", o.peer.name, o.hardship, o.word(), o.command)
		if o.why != "" {
			fmt.Fprintf(b, "The first witness: %s\n", strings.TrimSuffix(o.why, ".")+".")
		}
		note := o.peer.notes[o.hardship]
		if slices.Contains(o.verdicts, reports.Violated) && slices.Contains(o.verdicts, reports.Pass) && !strings.Contains(note, rare) {
			note = strings.TrimSpace(note + " This " + rare)
		}
		if note != "" {
			b.WriteString(note + "\n")
		}
	}
}
